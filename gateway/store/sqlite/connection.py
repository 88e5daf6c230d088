"""Connections to one SQLite file, and the transaction a unit of work sees."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gateway.domain.searching import searchable
from gateway.store.database import Row, Transaction

BUSY_SECONDS = 10
"""How long a write waits for another process's; a chat beside the gateway writes to the same file."""


class SqliteTransaction(Transaction):
    """A transaction on a connection that somebody else begins and ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, *values: Any) -> int:
        return self._connection.execute(sql, values).rowcount

    def all(self, sql: str, *values: Any) -> Sequence[Row]:
        # A dictionary finds a column at once, where a `sqlite3.Row` looks through all their names.
        cursor = self._plain(sql, values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def values(self, sql: str, *values: Any) -> Sequence[Sequence[Any]]:
        return self._plain(sql, values).fetchall()

    def _plain(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(sql, values)


def connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection for use by one thread at a time.

    `synchronous=FULL` makes a commit survive a power cut; WAL lets readers go on beside the writer.
    """
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    # A damaged character costs itself, not the query.
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.row_factory = sqlite3.Row
    connection.create_function("searchable", 1, _searchable, deterministic=True)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA cache_size=-8000")
    if read_only:
        connection.execute("PRAGMA query_only=ON")
    return connection


def _searchable(data: bytes) -> str:
    # Bytes, since a damaged character in a text would fail before we are called.
    return searchable(data.decode("utf-8", "replace"))
