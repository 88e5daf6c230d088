"""Reading: the newest rows of a long session from cold, and lists of many sessions."""

from __future__ import annotations

import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from bench.filling import bare, fill, opened, session_id
from bench.pairs import medians
from bench.row import Row
from gateway.ports.sessions import SessionQuery
from gateway.sessions import SessionManager
from gateway.store.headers import COLUMNS
from gateway.tokens.o200k import O200kCounter

NEWEST = 200
PAGE = 50
HEADERS = f"""
SELECT {", ".join(COLUMNS)} FROM sessions WHERE deleted_at IS NULL ORDER BY pinned DESC, updated_at DESC, id LIMIT ?
"""


async def measure_cold(*, short: int = NEWEST, long: int = 10_000, rounds: int = 30) -> Sequence[Row]:
    """Measure a header and the newest rows, each time over new connections, which have nothing in SQLite's cache."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path, sessions=1, rows_each=short)
        fill(path, sessions=1, rows_each=long)

        async def read(id: str) -> float:
            async with opened(path) as store:
                manager = SessionManager(store.sessions, O200kCounter())
                started = time.perf_counter()
                await manager.get(id)
                assert len(await manager.rows(id, limit=NEWEST)) == min(NEWEST, short)
                return time.perf_counter() - started

        times = await medians(rounds, lambda: read(session_id(1)), lambda: read(session_id(0)))
    return [
        Row(
            name=f"from cold, a header and the newest {NEWEST} of {long:,} rows",
            ours=times[0] * 1000,
            floor=times[1] * 1000,
            unit="ms",
            floor_is=f"the same of {short} rows",
            at_most=1.5,
        )
    ]


async def measure_lists(*, sessions: int = 10_000, rounds: int = 20) -> Sequence[Row]:
    """Measure the first page of a list and all of it; the floor is the bare query, its rows as tuples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path, sessions=sessions, rows_each=1)
        with closing(bare(path)) as floor:
            async with opened(path) as store:
                manager = SessionManager(store.sessions, O200kCounter())
                page = await medians(rounds * 10, lambda: _list(manager, PAGE), lambda: _query(floor, PAGE))
                whole = await medians(rounds, lambda: _list(manager, sessions), lambda: _query(floor, sessions))
                paged = await medians(rounds, lambda: _pages(manager, sessions), lambda: _query(floor, sessions))
                memory = [await _peak(partial(_pages, manager, count)) for count in (sessions // 10, sessions)]
    return [
        _row(f"list {PAGE} of {sessions:,} sessions", page),
        _row(f"list all {sessions:,} sessions at once", whole),
        _row(f"list all {sessions:,} sessions by pages of {PAGE}", paged, at_most=None),
        Row(
            name=f"most memory while paging through {sessions:,} sessions",
            ours=memory[1] / 1e6,
            floor=memory[0] / 1e6,
            unit="MB",
            floor_is=f"the same through {sessions // 10:,}",
            at_most=1.1,
        ),
    ]


def _row(name: str, times: Sequence[float], at_most: float | None = 3) -> Row:
    ours, floor = (time * 1000 for time in times)
    return Row(name=name, ours=ours, floor=floor, unit="ms", floor_is="the bare query", at_most=at_most)


async def _list(manager: SessionManager, count: int) -> None:
    assert len((await manager.list(SessionQuery(limit=count))).sessions) == count


async def _query(floor: sqlite3.Connection, count: int) -> None:
    assert len(floor.execute(HEADERS, (count,)).fetchall()) == count


async def _pages(manager: SessionManager, most: int) -> None:
    seen, cursor = 0, None
    while seen < most:
        page = await manager.list(SessionQuery(limit=PAGE, cursor=cursor))
        seen += len(page.sessions)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen >= most


async def _peak(work: Callable[[], object]) -> float:
    await work()  # type: ignore[misc]
    tracemalloc.start()
    await work()  # type: ignore[misc]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak
