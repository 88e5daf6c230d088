"""Receivers: each channel is opened, kept going, and red when it cannot be helped; none takes another down."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.app.receivers import Receivers
from gateway.domain.errors import AuthFailed, Unavailable
from gateway.domain.inbound import Inbound
from gateway.ports.channel import Channel
from tests.clock import ManualClock, settle
from tests.fakes import FakeChannel


async def nothing(inbound: Inbound) -> None:
    """Take an event and do nothing with it."""


@asynccontextmanager
async def running(clock: ManualClock, *channels: FakeChannel) -> AsyncIterator[Receivers]:
    by_name = {channel.name: channel for channel in channels}
    receivers = Receivers(by_name, opened={}, sink=nothing, clock=clock, random=lambda: 1.0)
    task = asyncio.create_task(receivers.run())
    await settle()
    try:
        yield receivers
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await receivers.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_every_channel_is_opened_received_from_and_closed(clock: ManualClock) -> None:
    channels = FakeChannel("one"), FakeChannel("two")
    async with running(clock, *channels) as receivers:
        assert set(receivers.health()) == {"one", "two"}
        assert all(health.receiving for health in receivers.health().values())
    assert [(channel.opened, channel.closed) for channel in channels] == [(1, 1), (1, 1)]


async def test_a_refused_token_makes_its_channel_red_and_no_other(clock: ManualClock) -> None:
    bad, good = FakeChannel("bad"), FakeChannel("good")
    bad.open_errors = [AuthFailed("bot_token was refused: make a new one")]
    async with running(clock, bad, good) as receivers:
        health = receivers.health()
        assert (health["bad"].receiving, health["bad"].detail) == (False, "bot_token was refused: make a new one")
        assert health["good"].receiving
        await clock.advance(3600)
        assert bad.opened == 0


async def test_a_platform_that_is_away_is_tried_again_with_growing_waits(clock: ManualClock) -> None:
    channel = FakeChannel("one")
    channel.open_errors = [Unavailable("away")] * 3
    async with running(clock, channel) as receivers:
        assert receivers.health()["one"].detail == "away"
        await clock.advance(1 + 2)
        assert channel.opened == 0
        await clock.advance(4)
        assert channel.opened == 1
        assert receivers.health()["one"].receiving


async def test_a_receiver_that_falls_by_a_fault_of_ours_is_brought_back(clock: ManualClock) -> None:
    channel = FakeChannel("one")
    receive = channel.receive
    falls = [ZeroDivisionError("/secret/path"), KeyError("x")]

    async def falling(sink: object) -> None:
        if falls:
            raise falls.pop(0)
        await receive(nothing)

    channel.receive = falling  # type: ignore[method-assign]
    async with running(clock, channel) as receivers:
        assert receivers.health()["one"].detail == "ZeroDivisionError"
        await clock.advance(1 + 2)
        assert receivers.health()["one"].receiving
        assert channel.opened == 1


async def test_a_channel_whose_input_ends_is_told_of_and_stays_open_for_answers(clock: ManualClock) -> None:
    channel, ended = FakeChannel("one"), []

    async def ends(sink: object) -> None:
        return None

    channel.receive = ends  # type: ignore[method-assign]
    opened: dict[str, Channel] = {}
    receivers = Receivers(
        {"one": channel}, opened=opened, sink=nothing, clock=clock, random=lambda: 1.0, ended=ended.append
    )
    await receivers.run()
    assert ended == ["one"]
    assert set(opened) == {"one"}
    await receivers.close()
    assert channel.closed == 1
