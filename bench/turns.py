"""How long the gateway itself takes for a message: from accepted to sent, with a model that answers at once."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bench.bare import BARE, bare_transactions
from bench.null import NullChannel, running, said
from bench.row import Row
from gateway.app.core import Core

MESSAGES = 300
CHATS_AT_ONCE = 64
CHATS_IN_TURN = 30
"""Chats that take turns, so that what is measured is the gateway and not the length of one history."""

Talk = Callable[[str], Awaitable[float]]
"""Says something in a chat and returns the seconds until its answer was sent."""


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[tuple[NullChannel, Talk]]:
    """Run a gateway that can be talked with."""
    async with running(folder) as (core, channel):
        yield channel, lambda chat: message(core, channel, chat)


async def message(core: Core, channel: NullChannel, chat: str) -> float:
    """Say something in a chat and return the seconds from when it was accepted until its answer was sent."""
    channel.sent[chat] = sent = asyncio.Event()
    await core.intake(said(chat))
    accepted = time.perf_counter()
    await sent.wait()
    return time.perf_counter() - accepted


async def once_each(channel: NullChannel, talk: Talk, chats: Sequence[str]) -> None:
    """Say something in each of the chats, in many of them at once."""
    for first in range(0, len(chats), CHATS_AT_ONCE):
        await asyncio.gather(*(talk(chat) for chat in chats[first : first + CHATS_AT_ONCE]))
        channel.sent.clear()


async def measure_turns(*, messages: int = MESSAGES, rounds: int = 10) -> Sequence[Row]:
    """Measure one message at a time, and many chats at once; the floor is one durable transaction each."""
    with tempfile.TemporaryDirectory() as folder:
        floor = statistics.median(bare_transactions(Path(folder) / "floor.db", messages))
        async with talking(Path(folder)) as (_, talk):
            await talk("warm")
            alone = [await talk(f"one-{n % CHATS_IN_TURN}") for n in range(messages)]
            rate = await _many(talk, rounds)
    return [
        Row(
            name="accepted to sent, one message at a time (median)",
            ours=statistics.median(alone) * 1000,
            floor=floor * 1000,
            unit="ms",
            floor_is=BARE,
        ),
        Row(
            name=f"per turn with {CHATS_AT_ONCE} chats at once",
            ours=rate * 1000,
            floor=floor * 1000,
            unit="ms",
            floor_is=BARE,
        ),
    ]


async def _many(talk: Talk, rounds: int) -> float:
    async def chat(name: str) -> None:
        for _ in range(rounds):
            await talk(name)

    started = time.perf_counter()
    await asyncio.gather(*(chat(f"chat{n}") for n in range(CHATS_AT_ONCE)))
    return (time.perf_counter() - started) / (CHATS_AT_ONCE * rounds)
