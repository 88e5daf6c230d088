"""`/stop` and `!stop`: what runs is broken off, nothing more is written for it, and the chat goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.domain.legality import INTERRUPTED
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import stop_row
from tests.acceptance.chats import Chat, chat_of
from tests.acceptance.nursery import Nursery
from tests.acceptance.platforms import PLATFORMS
from tests.acceptance.script import answered, results, said
from tests.acceptance.stepped import Stepped, a_stepped_world, until

STOPPED = stop_row().text
pytestmark = pytest.mark.parametrize("platform", PLATFORMS)


async def in_a_model_call(world: Stepped, chat: Chat) -> None:
    """Start the gateway and bring a turn into the middle of an answer that does not end."""
    world.models.hold(after=1)
    await world.start()
    await chat.say("a long story")
    await world.models.arrived(1)


async def shows(chat: Chat, count: int) -> None:
    await until(lambda: len(chat.shown()) >= count, chat.shown)


async def goes_on(world: Stepped, chat: Chat, *earlier: str) -> None:
    """See that nothing more came of what was stopped, and that the next message is answered in view of all of it."""
    before = world.history(chat.key)
    assert before[-1] == ("user", STOPPED)
    await chat.say("well then")
    await shows(chat, 2)
    await world.rest()
    assert world.history(chat.key)[: len(before)] == before
    assert world.said(chat.key) == [*earlier, STOPPED, "well then"]
    assert answered(chat.shown()[1:]) == said(world.models.asked[-1]) == [*earlier, "well then"]
    assert world.turns() == [("stopped", 1), ("done", 1)]


async def test_a_stop_breaks_off_a_model_call(platform: str, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await in_a_model_call(world, chat)
        await chat.say(chat.stop)
        await shows(chat, 1)
        await world.models.idle()
        assert world.models.hung_up == 1
        assert chat.shown() == [ENGLISH.stopped]
        world.models.release()
        await goes_on(world, chat, "a long story")


async def test_a_stop_breaks_off_a_slow_tool(platform: str, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start()
        await chat.say("dig use:wait")
        await until(world.runs)
        await chat.say(chat.stop)
        await shows(chat, 1)
        assert chat.shown() == [ENGLISH.stopped]
        world.let_go()
        await goes_on(world, chat, "dig use:wait")
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[-1]) == [INTERRUPTED]


async def test_a_stop_takes_in_what_waits_and_does_not_answer_it(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await in_a_model_call(world, chat)
        await chat.say("with a dragon")
        await chat.say("and a knight")
        await chat.say(chat.stop)
        await shows(chat, 1)
        assert chat.shown() == [ENGLISH.stopped_waiting]
        world.models.release()
        await goes_on(world, chat, "a long story", "with a dragon", "and a knight")


async def test_a_stop_that_comes_again_after_a_restart_stops_nothing_more(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await in_a_model_call(world, chat)
        await chat.say(chat.stop)
        await shows(chat, 1)
        assert await world.gateway.stop() == 0
        again = chat.last()
        await world.start()
        await chat.say("well then")
        await world.models.arrived(2)
        await chat.repeat(again)
        await chat.taken()
        world.models.release()
        await shows(chat, 2)
        await world.rest()
        assert chat.shown()[0] == ENGLISH.stopped
        assert answered(chat.shown()[1:]) == ["a long story", "well then"]
        assert world.turns() == [("stopped", 1), ("done", 1)]


async def test_a_stop_where_nothing_runs_says_so(platform: str, tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start()
        await chat.say(chat.stop)
        await shows(chat, 1)
        await world.rest()
        assert chat.shown() == [ENGLISH.nothing_to_stop]
        assert world.turns() == []
