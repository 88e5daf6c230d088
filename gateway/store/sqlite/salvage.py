"""Saving what can be read of a damaged file: its good rows go into a new one, and the damaged one is kept beside it.

A bad page costs the rows on it. SQLite gives up a whole query at the first page it cannot read, so rows are asked for
by ranges of row ids that are halved around each failure, down to the single rows that are lost. The new file is made
beside the old one and takes its place only once it is whole, so a process that dies over it, or a full disk, changes
nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from loguru import logger

from gateway.domain.errors import Unavailable
from gateway.store.sqlite.connection import connect
from gateway.store.sqlite.indexing import index_new_rows
from gateway.store.sqlite.migrate import is_ours, prepare
from gateway.store.sqlite.orphans import adopt_orphans

TABLES = (
    "sessions", "messages", "message_marks", "attic", "turns", "inbox", "outbox", "outbox_parts", "leases", "media",
    "usage", "set_aside",
)  # fmt: skip
"""What is saved, in an order in which references find what they name. Indexes are made anew."""

ROWS_AT_ONCE = 1024
ROWS_PER_PAGE = 256
"""More rows than a page can hold, to bound row ids where the end of a table cannot be read."""
MOST_LOST = 10_000
"""Row ids that may fail one by one before the rest of a table is given up."""
_SIDE_FILES = ("", "-wal", "-shm")


@dataclass(slots=True)
class Saved:
    """What became of one table; `lost` counts row ids under which nothing could be read."""

    table: str
    kept: int = 0
    lost: int = 0


def mend_if_damaged(path: Path, now: datetime) -> None:
    """Check a file of ours that was left without being closed, and save what can be read of it if it is damaged."""
    if is_damaged(path):
        salvage(path, now)


def is_damaged(path: Path) -> bool:
    """Return whether the pages of a file of ours are damaged; raise `Unavailable` if that cannot be found out now."""
    if not path.exists() or not is_ours(path):
        return False
    try:
        with closing(connect(path)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok")
    except (sqlite3.DatabaseError, UnicodeError) as error:
        if _is_corruption(error):
            return True
        raise Unavailable(f"cannot check the database {path}: {error}") from error


def salvage(path: Path, now: datetime) -> list[Saved]:
    """Replace the file by a new one of all rows that can be read; return what was kept and lost."""
    mending = path.with_name(f"{path.name}.mending")
    try:
        _remove(mending)
        saved = _rebuild(path, mending)
    except (sqlite3.Error, UnicodeError, OSError) as error:
        raise Unavailable(f"the database {path} is damaged and cannot be mended now: {error}") from error
    aside = path.with_name(f"{path.name}.damaged-{now:%Y%m%dT%H%M%S}")
    for suffix in _SIDE_FILES:
        side = path.with_name(path.name + suffix)
        if side.exists():
            side.rename(aside.with_name(aside.name + suffix))
    mending.rename(path)
    lost = {one.table: one.lost for one in saved if one.lost}
    logger.bind(kept_aside=str(aside), lost=lost).warning("the database was damaged; what could be read of it is kept")
    return saved


def _rebuild(path: Path, mending: Path) -> list[Saved]:
    prepare(mending)
    with closing(connect(path)) as old, closing(connect(mending)) as new:
        new.execute("PRAGMA foreign_keys=OFF")
        new.execute("BEGIN")
        saved = [_copy(old, new, table) for table in TABLES]
        adopt_orphans(new)
        new.execute(_REPAIR_COUNTS)
        index_new_rows(new)
        new.execute("COMMIT")
        # One file is renamed, so nothing of it may be left in the log beside it.
        new.execute("PRAGMA wal_checkpoint(TRUNCATE)")
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
    saved = Saved(table)
    for rows in _readable(old, table, names):
        if rows is None:
            saved.lost += 1
        else:
            saved.kept += sum(new.execute(insert, tuple(row)).rowcount for row in rows)
        if saved.lost >= MOST_LOST:
            break
    return saved


def _readable(old: sqlite3.Connection, table: str, names: str) -> Iterator[list[sqlite3.Row] | None]:
    """Yield rows in bunches, and None for each row id under which nothing can be read."""
    last = _last_row_id(old, table)
    ranges = [(first, min(first + ROWS_AT_ONCE - 1, last)) for first in range(1, last + 1, ROWS_AT_ONCE)][::-1]
    while ranges:
        first, end = ranges.pop()
        sql = f"SELECT {names} FROM {table} WHERE rowid BETWEEN ? AND ?"
        rows = _attempt(old, sql, first, end)
        if rows is not None or first == end:
            yield rows
        else:
            middle = (first + end) // 2
            ranges += [(middle + 1, end), (first, middle)]


def _last_row_id(old: sqlite3.Connection, table: str) -> int:
    """Return the highest row id; a bound of it where the end of the table cannot be read, 0 where nothing of it can."""
    highest = _attempt(old, f"SELECT coalesce(max(rowid), 0) FROM {table}")
    if highest is not None:
        return int(highest[0][0])
    if _attempt(old, f"SELECT rowid FROM {table} ORDER BY rowid LIMIT 1") is None:
        logger.bind(table=table).warning("nothing of a table can be read")
        return 0
    (pages,) = old.execute("PRAGMA page_count").fetchone()
    return int(pages) * ROWS_PER_PAGE


def _attempt(old: sqlite3.Connection, sql: str, *values: int) -> list[sqlite3.Row] | None:
    """Return the rows of a query, or None if it meets a damaged page; any other failure is raised."""
    try:
        return old.execute(sql, values).fetchall()
    except (sqlite3.DatabaseError, UnicodeError) as error:
        if not _is_corruption(error):
            raise
        return None


def _is_corruption(error: Exception) -> bool:
    # Damage in a table's own definition shows as a message of SQLite's that is no text.
    return isinstance(error, UnicodeError) or getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT


def _remove(path: Path) -> None:
    for suffix in _SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
