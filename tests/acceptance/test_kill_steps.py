"""SIGKILL at every step of a turn: what was said is kept once, what was done is not done again, and one answer comes.

In each of these a person asks for something that takes a tool with an effect, the gateway is killed at one step, the
person writes again while it is down, and it is started once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.legality import INTERRUPTED
from tests.acceptance.chats import chat_of
from tests.acceptance.nursery import Nursery
from tests.acceptance.platforms import on_platforms
from tests.acceptance.script import answered, results
from tests.acceptance.stepped import Stepped, a_stepped_world, until

ASKED, MEANWHILE = "buy milk use:note", "and bread"


@dataclass(frozen=True)
class Kill:
    """Where the process is killed, and what follows: the turn's attempt, the runs of the tool, and its result."""

    where: str
    step: str
    attempt: int = 2
    runs: int = 1
    is_interrupted: bool = False
    is_sending: bool = False
    may_show_twice: bool = False
    """Where the platform cannot be asked what it shows."""


KILLS = (
    Kill("before a message is stored", "Turns.accept:before:1", attempt=1),
    Kill("before a stored message is acknowledged", "Turns.accept:after:1", attempt=1),
    Kill("before the turn begins", "Turns.begin:before:1", attempt=1),
    Kill("once the turn has begun", "Turns.begin:after:1"),
    Kill("before the model is asked", "Model.stream:before:1"),
    Kill("once the model has asked for a tool", "Model.stream:event:1"),
    Kill("before the call is stored", "Turns.append_round:before:1"),
    Kill("once the call is stored", "Turns.append_round:after:1", runs=0, is_interrupted=True),
    Kill("before the tool", "Tools.call:before:1", runs=0, is_interrupted=True),
    Kill("in the tool", "Tools.call:inside:1", is_interrupted=True),
    Kill("after the tool", "Tools.call:after:1", is_interrupted=True),
    Kill("before the result is stored", "Turns.append_round:before:2", is_interrupted=True),
    Kill("once the result is stored", "Turns.append_round:after:2"),
    Kill("before more joins the turn", "Turns.join:before:1"),
    Kill("once more could join the turn", "Turns.join:after:1"),
    Kill("in the middle of the answer", "Model.stream:event:5"),
    Kill("before the answer is stored", "Turns.finish:before:1"),
    Kill("once the answer is stored", "Turns.finish:after:1", attempt=1),
    Kill("before the parts are stored", "Outbox.save_parts:before:1", attempt=1),
    Kill("once the parts are stored", "Outbox.save_parts:after:1", attempt=1),
    Kill("once a send is announced", "Outbox.opening:after:1", attempt=1, is_sending=True),
    Kill("in a send that was not made", "Channel.post:before:1", attempt=1, is_sending=True),
    Kill("in a send that was made", "Channel.post:after:1", attempt=1, is_sending=True, may_show_twice=True),
    Kill("before a send is written down", "Outbox.done:before:1", attempt=1, is_sending=True, may_show_twice=True),
    Kill("once a send is written down", "Outbox.done:after:1", attempt=1, is_sending=True),
)


@pytest.mark.parametrize(("kill", "platform"), on_platforms(KILLS))
async def test_a_process_killed_there_is_gone_on_with(
    kill: Kill, platform: str, tmp_path: Path, nursery: Nursery
) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        chat = chat_of(world, platform)
        await world.start(kill.step)
        await chat.say(ASKED)
        await world.struck()
        await chat.say(MEANWHILE)
        await world.start()
        await until(lambda: MEANWHILE in answered(chat.shown()), chat.shown)
        await world.rest()
        judge(world, kill, chat.key, chat.shown())


def judge(world: Stepped, kill: Kill, key: str, shown: list[str]) -> None:
    """Look at the history, the turns, the tool, and what the person has read."""
    assert world.said(key) == [ASKED, MEANWHILE]
    first, *others = world.turns()
    assert first == ("done", kill.attempt)
    assert others in ([], [("done", 1)])
    assert sum(world.runs().values()) == kill.runs
    assert all(count == 1 for count in world.runs().values())
    assert results(world.models.asked[-1]) == [INTERRUPTED if kill.is_interrupted else "note done"]
    has_doubt = kill.may_show_twice and key.startswith("telegram")
    assert world.resent() >= has_doubt
    assert answered(shown) == has_doubt * [ASKED] + [ASKED, MEANWHILE]
