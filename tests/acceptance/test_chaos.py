"""Everything at once: a crowd on two platforms, bad weather around, and the process killed again and again.

At the end every message is in its chat's history once and in order, every turn has ended in one answer or one note,
and nothing is left over, in the store or in the process.
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.domain.busy import Busy
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import stop_row
from tests.acceptance.crowd import Person, crowd
from tests.acceptance.nursery import Nursery
from tests.acceptance.script import ANSWER
from tests.acceptance.stepped import SETTINGS, Stepped, a_stepped_world, until
from tests.acceptance.weather import Weather

CHAOTIC = f"{SETTINGS}\nburst_seconds = 0.2\ndrain_seconds = 0.3"
RESTARTS = 0.3
"""How often a process is asked to end and not killed."""
STEPS = (
    "Turns.accept", "Turns.begin", "Turns.join", "Turns.append_round", "Turns.finish", "Turns.fail",
    "Outbox.save_parts", "Outbox.opening", "Outbox.done", "Tools.call", "Channel.post",
)  # fmt: skip
STOPPED = stop_row().text
WAIT_SECONDS = 300
"""Only guards against hanging for ever: at the worst, every turn that was running at a kill is run by itself."""


@dataclass(frozen=True)
class Size:
    """How much of it: `pause` and `life` are the longest seconds between two messages of a person and two kills."""

    people: int
    messages: int
    kills: int
    pause: float
    life: float
    calm: float


SMALL = Size(people=12, messages=4, kills=3, pause=1.5, life=2, calm=0.3)
FULL = Size(people=200, messages=10, kills=20, pause=20, life=8, calm=0.2)


@pytest.mark.timeout(1200)  # two hundred people who write for minutes
async def test_nothing_is_lost_or_done_twice_in_chaos(tmp_path: Path, nursery: Nursery, proving: bool) -> None:
    size, seed = FULL if proving else SMALL, secrets.randbits(32)
    async with a_stepped_world(tmp_path, nursery, CHAOTIC) as world:
        with told(f"seed {seed}"):
            configure(world, random.Random(seed))
            people = await chaos(world, size, random.Random(seed))
            await end(world, people)
            judge(world, people)


@contextmanager
def told(seed: str) -> Iterator[None]:
    """Add the seed to whatever goes wrong."""
    try:
        yield
    except BaseException as error:
        error.add_note(seed)
        raise


def configure(world: Stepped, chance: random.Random) -> None:
    """Let everybody talk everywhere, and each platform treat what comes while it is busy in a way of its own."""
    config = world.gateway.config
    text = re.sub(r"^(people|chats) = .*", r'\1 = ["*"]', config.read_text(), flags=re.MULTILINE)
    for channel in ("slack", "telegram"):
        text = text.replace(f"[channels.{channel}]", f'[channels.{channel}]\nbusy = "{chance.choice(list(Busy))}"')
    # What is given up after ten failures is kept and told, but here all of it is to arrive.
    config.write_text(f"{text}\n[delivery]\nmax_attempts = 1000\n")


async def chaos(world: Stepped, size: Size, chance: random.Random) -> list[Person]:
    """Let people write while everything goes wrong; return them with what they wrote."""
    people, weather = crowd(world, size.people), Weather(world, chance)
    world.models.answer = weather.answer
    blowing = asyncio.create_task(weather.blow(size.calm))
    try:
        async with asyncio.timeout(WAIT_SECONDS), asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(person.write(size.messages, size.pause, chance))
            group.create_task(kills(world, size, chance))
    finally:
        blowing.cancel()
        await asyncio.gather(blowing, return_exceptions=True)
    return people


async def kills(world: Stepped, size: Size, chance: random.Random) -> None:
    """Start the gateway and have it killed, by its own hand at a step or by ours at any moment, and start it again.

    Some lives in between end in good order, with whatever was running cut short.
    """
    killed = 0
    while killed < size.kills:
        step = f"{chance.choice(STEPS)}:{chance.choice(('before', 'after'))}:{chance.randint(1, 20)}"
        await world.start(chance.choice((step, "")))
        with suppress(TimeoutError):
            await asyncio.wait_for(world.gateway.ended(), chance.random() * size.life)
        if world.gateway.runs and chance.random() < RESTARTS:
            code = await world.gateway.stop()
            assert code in (0, -signal.SIGKILL), "".join(world.gateway.output[-50:])
            assert code or not world.left(), world.left()
        else:
            await world.gateway.kill()
            killed += 1
    await world.start()


async def end(world: Stepped, people: list[Person]) -> None:
    """Wait until all that was written is stored and nothing is left to do; then stop in good order."""
    count = sum(len(person.written) + person.stops for person in people)
    stored = "SELECT 1 FROM inbox"
    await until(lambda: len(world.rows(stored)) == count, lambda: "".join(world.gateway.output[-400:]))
    await world.rest(WAIT_SECONDS)


def judge(world: Stepped, people: list[Person]) -> None:
    """Compare what was written with what is stored, what was done, and what the platforms show."""
    for person in people:
        assert [text for text in world.said(person.chat.key) if text != STOPPED] == person.written
    deliveries = "SELECT turn_id FROM outbox WHERE turn_id IS NOT NULL"
    delivered = Counter(row["turn_id"] for row in world.rows(deliveries))
    assert delivered == Counter(row["id"] for row in world.rows("SELECT id FROM turns"))
    assert {state for state, _ in world.turns()} <= {"done", "failed", "stopped", "set aside"}
    assert {row["state"] for row in world.rows("SELECT state FROM inbox")} == {"done"}
    assert {(row["state"], row["error"]) for row in world.rows("SELECT state, error FROM outbox")} == {("done", None)}
    assert set(world.runs().values()) <= {1}
    assert sum(doubled(world, person) for person in people) <= world.resent()


def doubled(world: Stepped, person: Person) -> int:
    """Compare what a chat shows with the answers that are stored; return how much of it is shown more than once."""
    phrases = (ENGLISH.stopped, ENGLISH.stopped_waiting, ENGLISH.nothing_to_stop)
    shown = [text for text in person.chat.shown() if text not in phrases]
    once = list(dict.fromkeys(shown))
    answers = [text for role, text in world.history(person.chat.key) if role == "assistant" and text]
    assert [text for text in once if text.startswith(ANSWER)] == answers
    assert person.chat.key.startswith("telegram") or shown == once
    return len(shown) - len(once)
