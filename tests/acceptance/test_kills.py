"""SIGKILL at random instants while messages arrive: nothing accepted is lost, nothing is answered by two turns."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.world import World, a_world

KILLS, KILLS_PROVING = 5, 50


async def talk(world: World, number: int, chance: random.Random) -> list[str]:
    """Everybody writes two messages, at random moments; return what was written."""
    written = []
    for n in range(2):
        await asyncio.sleep(chance.random() * 0.05)
        await world.slack.dm(world.alice, f"alice-{number}-{n}")
        await world.slack.mention(world.bob, world.general, f"bob-{number}-{n}")
        await world.telegram.private(111, f"carol-{number}-{n}")
        await world.telegram.group(-1001, 222, f"dave-{number}-{n}")
        written += [f"{person}-{number}-{n}" for person in ("alice", "bob", "carol", "dave")]
    return written


def shown(world: World) -> list[str]:
    """Return everything the bot has shown anywhere, answers by the line."""
    texts = list(world.slack.answers(world.slack.dm_channel(world.alice)))
    for message in world.slack.world.chats[world.general].shown(None):
        texts += world.slack.answers(world.general, message.ts)
    return texts + world.telegram.messages(111) + world.telegram.messages(-1001)


async def until_answered(world: World, written: list[str]) -> None:
    async with asyncio.timeout(60):
        while True:
            text = "\n".join(shown(world))
            if all(message in text for message in written):
                return
            await asyncio.sleep(0.02)


async def until_settled(world: World) -> None:
    """Wait until what the last kill left between shown and written down has been looked for, and is written down."""
    async with asyncio.timeout(60):
        while world.rows("SELECT 1 FROM outbox WHERE state = 'pending'"):
            await asyncio.sleep(0.05)


@pytest.mark.timeout(1800)  # fifty kills, each with two starts of the process
async def test_a_gateway_killed_at_random_answers_every_message_once(tmp_path: Path, proving: bool) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    kills = KILLS_PROVING if proving else KILLS
    written: list[str] = []
    async with a_world(tmp_path) as world:
        for number in range(kills):
            await world.gateway.start()
            if chance.random() < 0.7:
                await world.gateway.ready()
            talking = asyncio.create_task(talk(world, number, chance))
            await asyncio.sleep(chance.random() * 0.25)
            await world.gateway.kill()
            written += await talking
            await world.gateway.start()
            await until_answered(world, written)
            await world.gateway.kill()
        await world.gateway.start()
        await until_answered(world, written)
        await until_settled(world)
        await world.gateway.stop()
        judge(world, written, f"seed {seed}")


def judge(world: World, written: list[str], seed: str) -> None:
    """Compare what was written with the history, and with what the platforms show."""
    stored = Counter(row["content"] for row in world.rows("SELECT content FROM messages WHERE role = 'user'"))
    assert stored == Counter(written), seed
    turns = {row["id"]: row["state"] for row in world.rows("SELECT id, state FROM turns")}
    assert set(turns.values()) == {"done"}, seed
    answered = Counter(row["turn_id"] for row in world.rows("SELECT turn_id FROM messages WHERE role = 'assistant'"))
    assert answered == Counter(turns.keys()), seed
    assert world.rows("SELECT 1 FROM inbox WHERE state = 'pending'") == [], seed
    assert world.rows("SELECT 1 FROM outbox WHERE state <> 'done'") == [], seed
    assert world.models.refusals == [], seed
    (counted,) = world.rows("SELECT coalesce(sum(resent), 0) AS total FROM outbox_parts")
    doubled = sum(count - 1 for count in Counter(shown(world)).values())
    assert doubled <= counted["total"], seed
    slack = [text for text in shown(world) if "alice" in text or "bob" in text]
    assert len(slack) == len(set(slack)), seed
