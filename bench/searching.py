"""Searching a million rows."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.filling import Words, bare, fill, opened
from bench.pairs import medians
from bench.row import Row
from gateway.sessions import SessionManager
from gateway.tokens.o200k import O200kCounter

LIMIT = 20
BEGINNINGS = "w4b* w5c*"
QUERY = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rank LIMIT ?"


async def measure_search(*, sessions: int = 10_000, rows_each: int = 100, rounds: int = 30) -> Sequence[Row]:
    """Measure searches for two words, common and rare, and for beginnings; the floor is the full-text query alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path, sessions=sessions, rows_each=rows_each)
        with closing(bare(path)) as floor:
            async with opened(path) as store:
                manager = SessionManager(store.sessions, O200kCounter())
                return [
                    await _measured(manager, floor, sessions * rows_each, Words.common, rounds),
                    await _measured(manager, floor, sessions * rows_each, Words.rare, rounds * 4),
                    await _measured(manager, floor, sessions * rows_each, BEGINNINGS, rounds, "beginnings of words"),
                ]


async def _measured(
    manager: SessionManager, floor: sqlite3.Connection, rows: int, words: str, rounds: int, kind: str = "words"
) -> Row:
    count = "SELECT count(*) FROM messages_fts WHERE messages_fts MATCH ?"
    (hits,) = floor.execute(count, (words,)).fetchone()

    async def query() -> None:
        floor.execute(QUERY, (words, LIMIT)).fetchall()

    ours, bare_query = await medians(rounds, lambda: manager.search(words, limit=LIMIT), query)
    return Row(
        name=f"search {rows:,} rows for two {kind} that {hits:,} hold",
        ours=ours * 1000,
        floor=bare_query * 1000,
        unit="ms",
        floor_is=f"the bare full-text query, {LIMIT} best",
        at_most=3,
    )
