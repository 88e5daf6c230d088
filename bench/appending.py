"""Appending a pair of rows, durable: to a short and a long session, and to many at once."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.filling import bare, fill, opened, session_id
from bench.pairs import medians
from bench.row import Row
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Message, Role, Sender
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import Store
from gateway.store.sqlite import writer

QUESTION = "How are you today, and what do you make of the letter that came from Rome this morning? " * 4
ANSWER = "Thank you, quite well. The letter asks for a decision by Friday; here is what I would say. " * 6

BARE_PAIR = "a bare durable transaction of two inserts"

Append = Callable[[], Awaitable[None]]


async def measure_appending(
    *, short: int = 10, long: int = 10_000, rounds: int = 300, at_once: int = 64
) -> Sequence[Row]:
    """Measure pairs of rows appended to running turns; the floor is a bare transaction of two inserts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        shorts = rounds + 2 + at_once
        fill(path, sessions=shorts, rows_each=short)
        fill(path, sessions=1, rows_each=long)
        with closing(_floor(Path(folder) / "floor.db")) as floor:
            async with opened(path) as store:
                bench = _Appending(store, path, floor, session_id(shorts), _Sizes(short, long, at_once))
                return [
                    *await bench.one_at_a_time(rounds),
                    await bench.log(),
                    *await bench.many_at_once(max(rounds // 30, 1)),
                ]


def _floor(path: Path) -> sqlite3.Connection:
    connection = bare(path)
    connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT)")
    return connection


@dataclass(frozen=True, slots=True)
class _Sizes:
    short: int
    long: int
    at_once: int


class _Appending:
    """A store of short sessions and, as the last, a long one."""

    def __init__(self, store: Store, path: Path, floor: sqlite3.Connection, long_id: str, sizes: _Sizes) -> None:
        self._store = store
        self._path = path
        self._floor = floor
        self._long_id = long_id
        self._sizes = sizes
        self._unused = itertools.count()
        self._to_long: Append | None = None

    async def one_at_a_time(self, rounds: int) -> Sequence[Row]:
        shorts = iter([await self._next_short() for _ in range(rounds + 1)])
        to_long = await self._long()
        ms = [1000 * time for time in await medians(rounds, lambda: next(shorts)(), to_long, self._two_inserts)]
        sizes = self._sizes
        name = f"append a pair of rows, durable, to {sizes.long:,} rows"
        same = f"the same to {sizes.short} rows"
        return [
            Row(name=name, ours=ms[1], floor=ms[0], unit="ms", floor_is=same, at_most=1.3),
            Row(name=name, ours=ms[1], floor=ms[2], unit="ms", floor_is=BARE_PAIR, at_most=2.5),
        ]

    async def log(self) -> Row:
        short, long = [await self._logged(append) for append in (await self._next_short(), await self._long())]
        return Row(
            name=f"log written for a pair, to {self._sizes.long:,} rows",
            ours=long / 1000,
            floor=short / 1000,
            unit="kB",
            floor_is=f"the same to {self._sizes.short} rows",
            at_most=1.1,
        )

    async def many_at_once(self, rounds: int) -> Sequence[Row]:
        appends = [await self._next_short() for _ in range(self._sizes.at_once)]
        count = 10

        async def one_commit_each() -> None:
            with _most_per_commit(1):
                await _all(appends, count)

        times = await medians(
            rounds, lambda: _all(appends, count), one_commit_each, lambda: _times(self._two_inserts, len(appends))
        )
        ours, one_each, floor = (1000 * time / len(appends) for time in times)
        name = f"append a pair of rows, durable, {len(appends)} sessions at once, each"
        ours, one_each = ours / count, one_each / count
        return [
            Row(name=name, ours=ours, floor=one_each, unit="ms", floor_is="the same, one commit each", at_most=0.25),
            Row(name=name, ours=ours, floor=floor, unit="ms", floor_is=BARE_PAIR),
        ]

    async def _next_short(self) -> Append:
        return await _appender(self._store, session_id(next(self._unused)))

    async def _long(self) -> Append:
        self._to_long = self._to_long or await _appender(self._store, self._long_id)
        return self._to_long

    async def _two_inserts(self) -> None:
        self._floor.execute("BEGIN IMMEDIATE")
        for role, text in (("user", QUESTION), ("assistant", ANSWER)):
            insert = "INSERT INTO rows (session_id, role, content) VALUES (?, ?, ?)"
            self._floor.execute(insert, (session_id(0), role, text))
        self._floor.execute("COMMIT")

    async def _logged(self, append: Append, count: int = 32) -> float:
        """Return how much one append adds to the log, few enough of them for it not to be checkpointed."""
        with closing(bare(self._path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        log = self._path.with_name(f"{self._path.name}-wal")
        before = log.stat().st_size
        await _times(append, count)
        return (log.stat().st_size - before) / count


@contextmanager
def _most_per_commit(most: int) -> Iterator[None]:
    """Let the store's writer commit no more than this at once."""
    usual, writer.MOST_PER_COMMIT = writer.MOST_PER_COMMIT, most
    try:
        yield
    finally:
        writer.MOST_PER_COMMIT = usual


async def _appender(store: Store, id: str) -> Append:
    """Begin a turn in a session and return what appends a pair of rows to it."""
    header = await store.sessions.get(id)
    inbound = Inbound(
        kind=InboundKind.MESSAGE,
        route=Route(header.key.channel, header.key.chat_id),
        dedupe_key=uuid.uuid4().hex,
        sender=Sender(id="U1"),
        sent_at=datetime.now(UTC),
        text="hi",
    )
    await store.turns.accept(inbound, NewSession())
    lease = await store.leases.acquire(session_lease(id), "bench", timedelta(hours=1))
    assert lease is not None
    turn = await store.turns.begin(id, lease)
    assert turn is not None
    rows = [Message(role=Role.USER, content=QUESTION), Message(role=Role.ASSISTANT, content=ANSWER)]

    async def append() -> None:
        await store.turns.append_round(turn, lease, rows, None)

    return append


async def _times(append: Append, count: int) -> None:
    for _ in range(count):
        await append()


async def _all(appends: Sequence[Append], count: int) -> None:
    await asyncio.gather(*(_times(append, count) for append in appends))
