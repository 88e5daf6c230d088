"""How long the gateway itself takes for a message: from accepted to sent, with a model that answers at once."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.row import Row
from gateway.app.core import Core, open_core
from gateway.app.working import working
from gateway.config.load import load_settings
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.outbound import Part, Ref
from gateway.domain.policy import Rules
from gateway.logs.setup import configure
from gateway.store.sqlite.connection import connect
from tests.fakes import FakeChannel

MESSAGES = 300
CHATS_AT_ONCE = 64
CHATS_IN_TURN = 30
"""Chats that take turns, so that what is measured is the gateway and not the length of one history."""


class NullChannel(FakeChannel):
    """Sends nowhere, and tells who waits for a chat's answer when it has been sent."""

    def __init__(self) -> None:
        super().__init__("null", part_size=10_000)
        self.sent: dict[str, asyncio.Event] = {}

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        self.sent[to.chat_id].set()
        return Ref(id=key)


Talk = Callable[[str], Awaitable[float]]
"""Says something in a chat and returns the seconds until its answer was sent."""


@asynccontextmanager
async def talking(folder: Path) -> AsyncIterator[tuple[NullChannel, Talk]]:
    """Run a gateway in this process with one channel that sends nowhere."""
    settings = load_settings(None, {}, {}, folder)
    # Logging costs too, so it is on as it is in `run`, into a file.
    logging_off = configure(level="info", file=folder / "bench.log", stderr_level="error")
    channel = NullChannel()
    async with open_core(
        settings,
        {"null": channel},
        name="bench",
        environment={},
        extra_rules={"null": Rules(people=frozenset({"*"}))},
    ) as core:
        await core.receivers.open()
        async with working(core):
            yield channel, lambda chat: _message(core, channel, chat)
    logging_off()


async def measure_turns(*, messages: int = MESSAGES, rounds: int = 10) -> Sequence[Row]:
    """Measure one message at a time, and many chats at once; the floor is one durable transaction each."""
    with tempfile.TemporaryDirectory() as folder:
        floor = _bare_transactions(Path(folder) / "floor.db", messages)
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
            floor_is="one bare durable transaction",
        ),
        Row(
            name=f"per turn with {CHATS_AT_ONCE} chats at once",
            ours=rate * 1000,
            floor=floor * 1000,
            unit="ms",
            floor_is="one bare durable transaction",
        ),
    ]


async def _message(core: Core, channel: NullChannel, chat: str) -> float:
    channel.sent[chat] = sent = asyncio.Event()
    await core.intake(_inbound(chat))
    accepted = time.perf_counter()
    await sent.wait()
    return time.perf_counter() - accepted


async def _many(talk: Talk, rounds: int) -> float:
    async def chat(name: str) -> None:
        for _ in range(rounds):
            await talk(name)

    started = time.perf_counter()
    await asyncio.gather(*(chat(f"chat{n}") for n in range(CHATS_AT_ONCE)))
    return (time.perf_counter() - started) / (CHATS_AT_ONCE * rounds)


def _inbound(chat: str) -> Inbound:
    return Inbound(
        kind=InboundKind.MESSAGE,
        route=Route("null", chat),
        dedupe_key=uuid.uuid4().hex,
        sender=Sender(id="U1"),
        sent_at=datetime.now(UTC),
        text="How are you today?",
        is_direct=True,
        addresses_bot=True,
    )


def _bare_transactions(path: Path, count: int) -> float:
    connection: sqlite3.Connection = connect(path)
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")
    times = []
    for _ in range(count):
        started = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO rows (body) VALUES (?)", ("x" * 400,))
        connection.execute("COMMIT")
        times.append(time.perf_counter() - started)
    connection.close()
    return statistics.median(times)
