"""A loopback Slack, a channel for it, and an inbox, for the tests of the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import HealthCheck, settings

from channels.slack.adapter import SlackChannel
from channels.slack.api import Patience
from channels.slack.options import SlackOptions
from channels.slack.render import render
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.outbound import Outbound, Part
from gateway.ports.clock import Clock
from tests.clock import ManualClock
from tests.loopback.slack import SlackServer

ANA, BOB = "U0ANA", "U0BOB"
DM, GENERAL = Route("slack", "D0ANA"), Route("slack", "C0GENERAL")


class Inbox:
    """A sink that remembers; `before` runs first and may wait or raise."""

    def __init__(self) -> None:
        self.taken: list[Inbound] = []
        self.entered = 0
        self.before: Callable[[Inbound], Awaitable[None]] | None = None
        self._changed = asyncio.Condition()

    async def __call__(self, inbound: Inbound) -> None:
        self.entered += 1
        if self.before is not None:
            await self.before(inbound)
        async with self._changed:
            self.taken.append(inbound)
            self._changed.notify_all()

    async def until(self, count: int) -> list[Inbound]:
        """Return what was taken once there is so much of it."""
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(lambda: len(self.taken) >= count)
        return self.taken

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer() as server:
        server.add_user("ana")
        server.add_user("bob")
        server.add_channel("general", ANA, BOB)
        yield server


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


def options_for(slack: SlackServer, **changes: str) -> SlackOptions:
    settings = {"bot_token": slack.bot_token, "app_token": slack.app_token, "api_url": slack.api_url}
    return SlackOptions.model_validate(settings | changes)


@asynccontextmanager
async def opened(slack: SlackServer, clock: Clock, **patience: float) -> AsyncIterator[SlackChannel]:
    """Run a channel that is open and receives nothing."""
    made = SlackChannel("slack", options_for(slack), clock, patience=Patience(**patience))
    await made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def channel(slack: SlackServer, clock: Clock) -> AsyncIterator[SlackChannel]:
    async with opened(slack, clock) as made:
        yield made


def part(text: str, only_for: str | None = None) -> Part:
    """Return the one part of a short message."""
    (made,) = render(Outbound(text=text, only_for=only_for))
    return made


def count(channel: SlackChannel, what: str) -> int:
    """Return how often the channel saw something."""
    return channel.health().counters.get(what, 0)


@asynccontextmanager
async def receiving(channel: SlackChannel, inbox: Inbox) -> AsyncIterator[asyncio.Task[None]]:
    """Receive until the end of the block."""
    task = asyncio.create_task(channel.receive(inbox))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def eventually(true: Callable[[], object]) -> None:
    """Return once `true()` is, for what the adapter does after the server saw its part."""
    async with asyncio.timeout(30):
        while not true():
            await asyncio.sleep(0.002)


# How long an example takes says more about the machine than about the code.
calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
