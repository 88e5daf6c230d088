"""Opening a SQLite file: making it, checking that it is ours, and migrating it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from loguru import logger

from gateway.domain.errors import Refused, Unavailable
from gateway.store.migrations import migrations, pending
from gateway.store.sqlite.connection import connect

_CHUNK = 1 << 20
APPLICATION_ID = 0x54524E4B
"""Written into the file's header ("TRNK"), so that another program's database is never taken for ours."""


def prepare(path: Path) -> None:
    """Create or migrate the file.

    Raise `Refused` if it is not ours or too new, `Unavailable` if it cannot be opened.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _empty_if_blank(path)
        _check_untouched(path)
        connection = connect(path)
    except (OSError, sqlite3.Error) as error:
        raise _not_openable(path, error) from error
    try:
        _migrate(connection, path)
    except sqlite3.Error as error:
        raise _not_openable(path, error) from error
    finally:
        connection.close()
    path.chmod(0o600)


def is_ours(path: Path) -> bool:
    """Return whether a file bears our mark and a schema that this release knows; damage further in does not matter."""
    newest = migrations("gateway.store.sqlite.migrations")[-1].number
    try:
        mark, version = read_header(path)
        return mark == APPLICATION_ID and version <= newest
    except (sqlite3.Error, UnicodeError):
        return False


def read_header(path: Path) -> tuple[int, int]:
    """Return the mark of whose database a file is and the number of its schema; nothing of the file is changed.

    Raises `sqlite3.DatabaseError` for what is no database.
    """
    with _untouched(path) as connection:
        return _pragma(connection, "application_id"), _pragma(connection, "user_version")


def _check_untouched(path: Path) -> None:
    """Refuse another program's database before it is opened as ours are, which would change its journal."""
    if path.exists() and path.stat().st_size > 0:
        with _untouched(path) as connection:
            _check_owner(connection, path)


@contextmanager
def _untouched(path: Path) -> Iterator[sqlite3.Connection]:
    # Not `mode=ro`: where nobody has the file open, that would leave an empty log beside it.
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
        connection.execute("PRAGMA query_only=ON")
        yield connection


def _empty_if_blank(path: Path) -> None:
    """Take a file of nothing but zeros, as a power cut leaves one, for the empty file that it is."""
    log = path.with_name(f"{path.name}-wal")
    if not path.exists() or path.stat().st_size == 0 or log.exists():
        return
    with path.open("r+b") as file:
        while chunk := file.read(_CHUNK):
            if chunk.strip(b"\0"):
                return
        file.truncate(0)
    logger.bind(path=str(path)).warning("the database held nothing but zeros, and is made anew")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    steps = migrations("gateway.store.sqlite.migrations")
    # Nobody who only looks is to wait for a writer, so the lock is taken where there is something to do.
    is_ours = _pragma(connection, "application_id") == APPLICATION_ID
    if is_ours and not pending(steps, _pragma(connection, "user_version"), str(path)):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        _check_owner(connection, path)
        for step in pending(steps, _pragma(connection, "user_version"), str(path)):
            for statement in _statements(step.sql):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={step.number}")
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _check_owner(connection: sqlite3.Connection, path: Path) -> None:
    is_empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if not is_empty and _pragma(connection, "application_id") != APPLICATION_ID:
        raise Refused(f"expected a Trunkline database or a new file, got another program's database: {path}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _statements(sql: str) -> list[str]:
    statements, current = [], ""
    for line in sql.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements


def _not_openable(path: Path, error: Exception) -> Refused | Unavailable:
    if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
        return Refused(f"expected a Trunkline database or a new file, got something else: {path}")
    return Unavailable(f"cannot open the database {path}: {error}")
