"""SIGTERM in the middle of work: nothing more is taken in, the wait is bounded, and the next process goes on."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from gateway.domain.legality import INTERRUPTED
from tests.acceptance.chats import Chat, chat_of
from tests.acceptance.nursery import Nursery
from tests.acceptance.platforms import MOSTLY_SLACK, MOSTLY_TELEGRAM
from tests.acceptance.script import answered, results
from tests.acceptance.stepped import SETTINGS, Stepped, a_stepped_world, until
from tests.loopback.slack_faults import SlackFault, held

IMPATIENT = f"{SETTINGS}\ndrain_seconds = 0.2"
LATE = "too late?"


async def stopping(world: Stepped, chat: Chat) -> None:
    """Ask for a stop in good order, and say something more once it has begun."""
    world.gateway.signal(signal.SIGTERM)
    await world.gateway.said("nothing more is taken in")
    await chat.say(LATE)


async def all_is_answered_by_the_next(world: Stepped, chat: Chat, asked: str) -> None:
    """Start again and compare what was said with what is stored and what was answered."""
    await world.start()
    await until(lambda: LATE in answered(chat.shown()), chat.shown)
    await world.rest()
    assert world.said(chat.key) == answered(chat.shown()) == [asked, LATE]
    assert set(world.turns()) == {("done", 1)}
    assert world.resent() == 0


@pytest.mark.parametrize("platform", MOSTLY_SLACK)
async def test_a_stop_cuts_a_model_call_after_a_while_and_the_turn_is_gone_on_with(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery, IMPATIENT) as world:
        chat = chat_of(world, platform)
        world.models.hold(after=1)
        await world.start()
        await chat.say("a long story")
        await world.models.arrived(1)
        await stopping(world, chat)
        assert await world.gateway.ended() == 0
        assert chat.shown() == []
        world.models.release()
        await all_is_answered_by_the_next(world, chat, "a long story")


@pytest.mark.parametrize("platform", MOSTLY_TELEGRAM)
async def test_a_stop_cuts_a_tool_after_a_while_and_it_is_not_run_again(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery, IMPATIENT) as world:
        chat = chat_of(world, platform)
        await world.start()
        await chat.say("dig use:wait")
        await until(world.runs)
        await stopping(world, chat)
        assert await world.gateway.ended() == 0
        await all_is_answered_by_the_next(world, chat, "dig use:wait")
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[-1]) == [INTERRUPTED]


@pytest.mark.parametrize("platform", MOSTLY_SLACK)
async def test_a_stop_waits_for_a_tool_that_ends_in_time(platform: str, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start()
        await chat.say("dig use:wait")
        await until(world.runs)
        await stopping(world, chat)
        world.let_go()
        assert await world.gateway.ended() == 0
        assert answered(chat.shown()) == ["dig use:wait"]
        await all_is_answered_by_the_next(world, chat, "dig use:wait")
        assert results(world.models.asked[-1]) == ["wait done"]


@pytest.mark.parametrize("platform", MOSTLY_TELEGRAM)
async def test_a_stop_asked_for_in_a_send_lets_it_be_made(platform: str, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start("Channel.post:before:1:SIGTERM")
        await chat.say("hello")
        assert await world.gateway.ended() == 0
        assert answered(chat.shown()) == ["hello"]
        await chat.say(LATE)
        await all_is_answered_by_the_next(world, chat, "hello")


@pytest.mark.parametrize("arrives", [True, False], ids=["arrives late", "never arrives"])
async def test_a_send_that_a_stop_has_cut_is_looked_for_before_it_is_made_again(
    arrives: bool, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery, IMPATIENT) as world:
        chat, release = chat_of(world, "slack"), asyncio.Event()
        # What is held is either done once it is let go of, or answered with an error that nobody hears any more.
        world.slack.fail_next(
            held(release) if arrives else SlackFault(release=release, error="fatal_error"), "chat.postMessage"
        )
        await world.start()
        await chat.say("hello")
        await world.slack.until(lambda: world.slack.called("chat.postMessage"))
        await stopping(world, chat)
        assert await world.gateway.ended() == 0
        assert chat.shown() == []
        release.set()
        await until(lambda: chat.shown() or not arrives)
        await all_is_answered_by_the_next(world, chat, "hello")


@pytest.mark.parametrize("platform", MOSTLY_TELEGRAM)
async def test_a_restart_that_a_tool_asked_for_does_not_wait_for_that_tool_for_ever(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery, IMPATIENT) as world:
        chat = chat_of(world, platform)
        await world.start()
        await chat.say("mend yourself use:restart")
        assert await world.gateway.ended() == 0
        await chat.say(LATE)
        await all_is_answered_by_the_next(world, chat, "mend yourself use:restart")
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[-1]) == [INTERRUPTED]
