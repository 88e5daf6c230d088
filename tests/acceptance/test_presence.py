"""The sign that the bot is at work: shown while it is, and gone at the end, whichever end that is."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.acceptance.chats import TelegramChat
from tests.acceptance.nursery import Nursery
from tests.acceptance.stepped import SETTINGS, Stepped, a_stepped_world, until
from tests.loopback.models_answers import Fault

IMPATIENT = f"{SETTINGS}\ndrain_seconds = 0.2"
End = Callable[[Stepped, str], Awaitable[None]]


def statuses(world: Stepped) -> list[str]:
    """Return what the threads of the workspace say of the bot."""
    return [status for status in world.slack.world.statuses.values() if status]


async def at_work(world: Stepped) -> str:
    """Start the gateway, bring it into a model call on either platform, and see the signs; return the thread."""
    world.models.hold()
    await world.start()
    thread = await world.slack.mention(world.bob, world.general, "in a thread")
    await TelegramChat(world.telegram, 111).say("in private")
    await world.models.arrived(2)
    await until(lambda: statuses(world) and world.telegram.chats.typing)
    assert list(world.slack.world.statuses) == [(world.general, thread)]
    assert world.telegram.chats.typing[0] == (111, None)
    return thread


async def an_answer(world: Stepped, thread: str) -> None:
    world.models.release()
    await all_told(world, thread)


async def silence(world: Stepped, thread: str) -> None:
    world.models.answer = lambda asked: "NO_REPLY"
    world.models.release()
    await until(lambda: world.turns() == 2 * [("done", 1)], world.turns)


async def a_failure(world: Stepped, thread: str) -> None:
    # Those that are held have been judged already: the next requests fail, which are the ones after a kill.
    await world.gateway.kill()
    world.models.fail_next(Fault.REFUSED, 2)
    await world.start()
    await all_told(world, thread)
    assert {state for state, _ in world.turns()} == {"failed"}


async def a_stop(world: Stepped, thread: str) -> None:
    await world.slack.mention(world.bob, world.general, "!stop", thread_ts=thread)
    await TelegramChat(world.telegram, 111).say("/stop")
    await all_told(world, thread)
    assert {state for state, _ in world.turns()} == {"stopped"}


async def a_kill(world: Stepped, thread: str) -> None:
    await world.gateway.kill()
    world.models.release()
    await world.start()
    await all_told(world, thread)


async def all_told(world: Stepped, thread: str) -> None:
    """Wait until either chat shows something of the bot."""
    await until(lambda: world.slack.answers(world.general, thread) and world.telegram.messages(111))


@pytest.mark.parametrize("end", [an_answer, silence, a_failure, a_stop, a_kill], ids=lambda end: end.__name__)
async def test_the_sign_is_gone_after(end: End, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        thread = await at_work(world)
        await end(world, thread)
        await until(lambda: not statuses(world), lambda: world.slack.world.statuses)
        typed = len(world.telegram.chats.typing)
        await world.rest()
        assert statuses(world) == []
        assert len(world.telegram.chats.typing) == typed


async def test_a_process_that_stops_takes_its_signs_with_it(tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery, IMPATIENT) as world:
        thread = await at_work(world)
        assert await world.gateway.stop(signal.SIGTERM) == 0
        assert statuses(world) == []
        assert world.left() == {}
        world.models.release()
        await world.start()
        await all_told(world, thread)
        await world.rest()
        assert statuses(world) == []
