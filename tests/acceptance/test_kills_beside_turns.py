"""SIGKILL while something is said beside a turn: a message that joins it, or a stop that it obeys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.legality import INTERRUPTED
from gateway.domain.phrases import ENGLISH
from tests.acceptance.chats import Chat, chat_of
from tests.acceptance.nursery import Nursery
from tests.acceptance.platforms import MOSTLY_SLACK, MOSTLY_TELEGRAM, on_platforms
from tests.acceptance.script import answered, results, said
from tests.acceptance.stepped import Stepped, a_stepped_world, until


@dataclass(frozen=True)
class Kill:
    """Where the process is killed, and the turns that there are in the end."""

    where: str
    step: str
    turns: list[tuple[str, int]]
    is_sending: bool = False


JOINS = (
    Kill("before it has joined", "Turns.join:before:1", [("done", 2), ("done", 1)]),
    Kill("once it has joined", "Turns.join:after:1", [("done", 2)]),
)
STOPS = (
    Kill("before it is stored", "Turns.request_stop:before:1", [("stopped", 2), ("done", 1)]),
    Kill("once it is stored", "Turns.request_stop:after:1", [("stopped", 2), ("done", 1)]),
    Kill("before the turn is ended", "Turns.fail:before:1", [("stopped", 2), ("done", 1)]),
    Kill("once the turn is ended", "Turns.fail:after:1", [("stopped", 1), ("done", 1)]),
)


async def stopped_in_a_model_call(world: Stepped, chat: Chat, step: str) -> None:
    """Start the gateway, bring a turn into a model call that does not end, and have it killed over a stop."""
    world.models.hold()
    await world.start(step)
    await chat.say("a long story")
    await world.models.arrived(1)
    await chat.say(chat.stop)
    await world.struck()


@pytest.mark.parametrize(("join", "platform"), on_platforms(JOINS))
async def test_a_message_that_joins_when_the_process_is_killed_is_answered_once(
    join: Kill, platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start(join.step)
        await chat.say("dig use:wait")
        await until(world.runs)
        await chat.say("and water it")
        await until(lambda: len(world.rows("SELECT 1 FROM inbox")) == 2)
        world.let_go()
        await world.struck()
        await world.start()
        await until(lambda: "and water it" in answered(chat.shown()), chat.shown)
        await world.rest()
        assert world.turns() == join.turns
        assert world.said(chat.key) == answered(chat.shown()) == ["dig use:wait", "and water it"]
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[-1]) == ["wait done"]


@pytest.mark.parametrize(("stop", "platform"), on_platforms(STOPS))
async def test_a_stop_that_is_obeyed_when_the_process_is_killed_is_obeyed_by_the_next(
    stop: Kill, platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await stopped_in_a_model_call(world, chat, stop.step)
        await world.start()
        await until(chat.shown)
        world.models.release()
        await chat.say("another one")
        await until(lambda: len(chat.shown()) == 2, chat.shown)
        await world.rest()
        assert world.turns() == stop.turns
        assert chat.shown()[0] == ENGLISH.stopped
        assert answered(chat.shown()[1:]) == ["a long story", "another one"]
        assert world.models.hung_up == len(world.models.asked) - 1


@pytest.mark.parametrize("platform", MOSTLY_SLACK)
async def test_a_tool_that_a_stop_and_then_a_kill_cut_off_is_told_of_as_interrupted(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start("Turns.fail:before:1")
        await chat.say("dig use:wait")
        await until(world.runs)
        await chat.say(chat.stop)
        await world.struck()
        await world.start()
        await until(chat.shown)
        await chat.say("and rest")
        await until(lambda: len(chat.shown()) == 2, chat.shown)
        await world.rest()
        assert world.turns() == [("stopped", 2), ("done", 1)]
        assert chat.shown()[0] == ENGLISH.stopped
        assert answered(chat.shown()[1:]) == ["dig use:wait", "and rest"]
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[-1]) == [INTERRUPTED]


@pytest.mark.parametrize("platform", MOSTLY_TELEGRAM)
async def test_a_turn_over_which_the_process_is_killed_twice_is_set_aside_and_never_sent_again(
    platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start("Tools.call:inside:1")
        await chat.say("poison use:note")
        await world.struck()
        await world.start("Model.stream:event:1")
        await world.struck()
        await chat.say("and this?")
        await world.start()
        await until(lambda: len(chat.shown()) == 2, chat.shown)
        await world.rest()
        note, answer = chat.shown()
        assert note.startswith(ENGLISH.set_aside.partition("{")[0])
        assert answered([answer]) == ["and this?"]
        assert [state for state, _ in world.turns()] == ["set aside", "done"]
        assert list(world.runs().values()) == [1]
        assert results(world.models.asked[1]) == [INTERRUPTED]
        assert said(world.models.asked[-1]) == ["and this?"]
        assert marked(world) == ["poison use:note"]


def marked(world: Stepped) -> list[str]:
    """Return what people said that is set aside."""
    sql = """
    SELECT content FROM messages JOIN message_marks USING (session_id, seq)
    WHERE mark = 'set aside' AND role = 'user' ORDER BY seq
    """
    return [row["content"] for row in world.rows(sql)]
