"""Turns that were running when the process was killed: one of them may have done it, so they go on one by one.

That is no reason to keep anybody else waiting, or not to hear a stop.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.domain.phrases import ENGLISH
from tests.acceptance.chats import Chat, SlackChat, TelegramChat
from tests.acceptance.nursery import Nursery
from tests.acceptance.script import answered, scripted
from tests.acceptance.stepped import SETTINGS, Stepped, a_stepped_world, until
from tests.loopback.models_answers import Answer, Asked


async def two_suspects(world: Stepped) -> tuple[Chat, Chat, asyncio.Event]:
    """Kill the process over two turns and start it again; return the chat at work, the one that waits, and the gate."""
    chats: dict[str, Chat] = {
        "slow one": SlackChat(world.slack, world.alice),
        "slow too": TelegramChat(world.telegram, 111),
    }
    go = asyncio.Event()

    async def answer(asked: Asked) -> Answer:
        if asked.last_user.startswith("slow"):
            await go.wait()
        return scripted(asked)

    world.models.answer = answer
    await world.start()
    for number, (text, chat) in enumerate(chats.items(), 1):
        await chat.say(text)
        await world.models.arrived(number)
    await world.gateway.kill()
    await world.start()
    await world.models.arrived(3)
    at_work = chats.pop(world.models.asked[-1].last_user)
    (waiting,) = chats.values()
    return at_work, waiting, go


async def test_a_stop_reaches_a_turn_that_waits_for_another_one(tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery) as world:
        at_work, waiting, go = await two_suspects(world)
        await waiting.say(waiting.stop)
        await until(waiting.shown)
        assert waiting.shown() == [ENGLISH.stopped]
        assert at_work.shown() == []
        go.set()
        await world.rest()
        assert sorted(state for state, _ in world.turns()) == ["done", "stopped"]


async def test_others_are_answered_while_turns_wait_for_one_another(tmp_path: Path, nursery: Nursery) -> None:
    async with a_stepped_world(tmp_path, nursery, f"{SETTINGS}\nmax_concurrent_turns = 2") as world:
        at_work, waiting, go = await two_suspects(world)
        other = TelegramChat(world.telegram, 222)
        await other.say("a quick one")
        await until(other.shown)
        assert at_work.shown() == waiting.shown() == []
        go.set()
        await world.rest()
        shown = [text for chat in (at_work, waiting, other) for text in answered(chat.shown())]
        assert sorted(shown) == ["a quick one", "slow one", "slow too"]
