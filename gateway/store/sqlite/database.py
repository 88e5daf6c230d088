"""One SQLite file as a `Database`: a writer thread with group commit, and a few readers beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

from gateway.domain.errors import Unavailable
from gateway.store.database import Database, Transaction
from gateway.store.sqlite.connection import SqliteTransaction, connect
from gateway.store.sqlite.writer import BeforeCommit, Writer

READERS = 2

T = TypeVar("T")


class SqliteDatabase(Database):
    """Keeps everything off the event loop. Made inside a running loop, and used from that loop only."""

    def __init__(self, path: Path, before_commit: BeforeCommit = lambda connection: None) -> None:
        """Open connections when they are needed; `before_commit` is called at the end of each transaction."""
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._writer = Writer(self._connect, self._check_file, before_commit)
        self._readers: list[sqlite3.Connection] = []
        self._idle: list[sqlite3.Connection] = []
        self._pool = ThreadPoolExecutor(READERS, thread_name_prefix="sqlite reader")

    @property
    def fault(self) -> str | None:
        if self._writer.fault is not None:
            return self._writer.fault
        try:
            self._check_file()
        except Unavailable as error:
            return str(error)
        return None

    async def write(self, work: Callable[[Transaction], T]) -> T:
        with _translated():
            return cast("T", await self._writer.submit(work))

    async def read(self, work: Callable[[Transaction], T]) -> T:
        with _translated():
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    async def close(self) -> None:
        await self._writer.close()
        await asyncio.to_thread(self._pool.shutdown)
        while self._readers:
            self._readers.pop().close()

    def _connect(self) -> sqlite3.Connection:
        connection = connect(self._path)
        self._identity = _identity(self._path)
        return connection

    def _check_file(self) -> None:
        """Refuse to write into a file that is no longer there: what is accepted would be gone with this process."""
        if self._identity is not None and _identity(self._path) != self._identity:
            raise Unavailable(f"the database {self._path} was removed or replaced while it was in use; start anew")

    def _read(self, work: Callable[[Transaction], T]) -> T:
        # There are as many connections as threads at the most; list.pop and append are atomic.
        connection = self._idle.pop() if self._idle else self._new_reader()
        try:
            connection.execute("BEGIN")
            try:
                return work(SqliteTransaction(connection))
            finally:
                connection.execute("ROLLBACK")
        finally:
            self._idle.append(connection)

    def _new_reader(self) -> sqlite3.Connection:
        connection = connect(self._path, read_only=True)
        self._readers.append(connection)
        return connection


@contextmanager
def _translated() -> Iterator[None]:
    """Raise what a full disk, a lock that is not let go, or a damaged page does as `Unavailable`.

    A broken constraint or a wrong statement is a fault of ours, and stays what it is.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise
    except sqlite3.Error as error:
        raise Unavailable(f"the store cannot be used at the moment: {error}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
