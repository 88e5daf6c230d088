"""Saving what can be read of a damaged file: its good rows go into a new one, and the damaged one is kept beside it.

A bad page costs the rows on it. SQLite gives up a whole query at the first page it cannot read, so rows are asked for
by ranges of row ids that are halved around each failure, down to the single rows that are lost.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from loguru import logger

from gateway.store.sqlite.connection import connect
from gateway.store.sqlite.indexing import index_new_rows
from gateway.store.sqlite.migrate import prepare

TABLES = (
    "sessions", "messages", "message_marks", "attic", "turns", "inbox", "outbox", "outbox_parts", "leases", "media",
    "usage",
)  # fmt: skip
"""What is saved, in an order in which references find what they name. Indexes are made anew."""

ROWS_AT_ONCE = 1024
_SIDE_FILES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Saved:
    """What became of one table."""

    table: str
    kept: int
    lost: int


def mend_if_damaged(path: Path, now: datetime) -> None:
    """Check a file that was left unclosed, and save what can be read of it if it is damaged."""
    if is_damaged(path):
        salvage(path, now)


def is_damaged(path: Path) -> bool:
    """Return whether SQLite finds anything wrong in a file that a process left without closing it."""
    wal = path.with_name(f"{path.name}-wal")
    if not path.exists() or not wal.exists() or wal.stat().st_size == 0:
        return False
    try:
        with closing(connect(path)) as connection:
            return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok")
    except sqlite3.DatabaseError:
        return True


def salvage(path: Path, now: datetime) -> list[Saved]:
    """Put the file aside and make a new one of all rows that can be read; return what was kept and lost."""
    aside = path.with_name(f"{path.name}.damaged-{now:%Y%m%dT%H%M%S}")
    for suffix in _SIDE_FILES:
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(aside.with_name(aside.name + suffix))
    prepare(path)
    with closing(connect(aside)) as old, closing(connect(path)) as new:
        new.execute("PRAGMA foreign_keys=OFF")
        saved = [_copy(old, new, table) for table in TABLES]
        new.execute(_REPAIR_COUNTS)
        index_new_rows(new)
    lost = {one.table: one.lost for one in saved if one.lost}
    logger.bind(kept_aside=str(aside), lost=lost).warning("the database was damaged; what could be read of it is kept")
    return saved


_REPAIR_COUNTS = """
UPDATE sessions SET
    message_count = (SELECT count(*) FROM messages WHERE messages.session_id = sessions.id),
    last_seq = max(last_seq, (SELECT coalesce(max(seq), 0) FROM messages WHERE messages.session_id = sessions.id))
"""


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, table: str) -> Saved:
    columns = [row["name"] for row in new.execute(f"PRAGMA table_info({table})")]
    names = ", ".join(columns)
    insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"
    kept = lost = 0
    new.execute("BEGIN")
    for rows in _readable(old, table, names):
        if rows is None:
            lost += 1
        else:
            kept += sum(new.execute(insert, tuple(row)).rowcount for row in rows)
    new.execute("COMMIT")
    return Saved(table, kept, lost)


def _readable(old: sqlite3.Connection, table: str, names: str) -> Iterator[list[sqlite3.Row] | None]:
    """Yield rows in bunches, and None for each row id under which nothing can be read."""
    last = _last_row_id(old, table)
    ranges = [(first, min(first + ROWS_AT_ONCE - 1, last)) for first in range(1, last + 1, ROWS_AT_ONCE)][::-1]
    while ranges:
        first, end = ranges.pop()
        try:
            yield old.execute(f"SELECT {names} FROM {table} WHERE rowid BETWEEN ? AND ?", (first, end)).fetchall()
        except sqlite3.DatabaseError:
            if first == end:
                yield None
            else:
                middle = (first + end) // 2
                ranges += [(middle + 1, end), (first, middle)]


def _last_row_id(old: sqlite3.Connection, table: str) -> int:
    """Return the highest row id, found by descending the table from its end; by doubling where that is damaged."""
    try:
        return int(old.execute(f"SELECT coalesce(max(rowid), 0) FROM {table}").fetchone()[0])
    except sqlite3.DatabaseError:
        return _highest_that_answers(old, table)


def _highest_that_answers(old: sqlite3.Connection, table: str) -> int:
    highest, probe = 0, 1
    while probe < 1 << 40:
        try:
            if old.execute(f"SELECT 1 FROM {table} WHERE rowid >= ? LIMIT 1", (probe,)).fetchone() is None:
                break
        except sqlite3.DatabaseError:
            pass
        highest, probe = probe, probe * 2
    return min(highest * 2, 1 << 24)
