"""Reading openworker's index of sessions, an SQLite file that another process may be writing to.

It is never changed, and nothing is left beside it: where reading it in place would need to write (a journal to be
rolled back, a write-ahead log) or to wait for a lock, a copy is read. A page that cannot be read costs the sessions on
it.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gateway.domain.errors import Refused
from gateway.store.importers.sqlite import copied, has_journals

Row = Mapping[str, object]
"""A row of the table by the names of its columns; texts are bytes, as damage may have made them no text."""

NAME = "coworker.db"

_BLOB = "messages"
_WAIT_SECONDS = 2.0
_MOST_FAILURES = 20_000
_ROWS_PER_PAGE = 256
"""More than a page can hold, to bound row ids where the last one cannot be found out."""
_ENDS = "SELECT (SELECT min(rowid) FROM sessions NOT INDEXED), (SELECT max(rowid) FROM sessions NOT INDEXED)"
_IN_USE = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


@dataclass(slots=True, kw_only=True)
class Index:
    """The sessions of the index by their ids. `damage` says what could not be read of it, if anything."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    is_there: bool = True
    damage: str = ""
    connection: sqlite3.Connection | None = None

    def messages(self, session_id: str) -> bytes | None:
        """Return the rows that an old version kept in the index itself, as JSON, or None; it may raise `OSError`."""
        row = self.rows.get(session_id)
        if row is None or self.connection is None or not row["has_messages"]:
            return None
        try:
            found = self.connection.execute(f"SELECT {_BLOB} FROM sessions WHERE rowid = ?", (row["rowid"],)).fetchone()
        except sqlite3.Error as error:
            raise OSError(f"{NAME}: {error}") from error
        return found[0] if found and isinstance(found[0], bytes) else None


@contextmanager
def open_index(path: Path) -> Iterator[Index]:
    """Read the index, and keep it open for the rows it holds; no lock is held between two statements.

    Raises `Refused` for one that may not be read now; a damaged or missing one is told by its `damage`.
    """
    with ExitStack() as stack:
        yield _read_or_tell(Path(os.path.realpath(path)), stack)


def _read_or_tell(path: Path, stack: ExitStack) -> Index:
    if not os.path.lexists(path):
        return Index(is_there=False, damage=f"there is no {NAME}")
    try:
        return _read_in_place(path, stack) or _read_copy(path, stack)
    except (sqlite3.Error, UnicodeError) as error:
        return Index(damage=f"{NAME} cannot be read ({error})")
    except OSError as error:
        if error.errno in (errno.EIO, errno.EISDIR):
            return Index(damage=f"{NAME} cannot be read ({error.strerror})")
        # What a person can mend (rights, a full disk) is not to cost every session its header.
        raise Refused(f"expected a {NAME} that can be read: {error}") from error


def _read_in_place(path: Path, stack: ExitStack) -> Index | None:
    """Return None where the file cannot be read without writing beside it, or not now."""
    if _is_in_flux(path):
        return None
    try:
        return _read(f"{path.as_uri()}?mode=ro", stack)
    except sqlite3.OperationalError as error:
        if _is_in_use(error):
            return None
        raise


def _read_copy(path: Path, stack: ExitStack) -> Index:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-")))
    return _read(copied(path, folder).as_uri(), stack)


def _is_in_flux(path: Path) -> bool:
    if has_journals(path):
        return True
    with path.open("rb") as file:
        return 2 in file.read(20)[18:]  # The version of the format; 2 says that there is a write-ahead log.


def _is_in_use(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _IN_USE


def _read(uri: str, stack: ExitStack) -> Index:
    connection = sqlite3.connect(uri, uri=True, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    stack.enter_context(closing(connection))
    connection.text_factory = bytes
    names = [str(row[1], "utf-8", "replace") for row in connection.execute("PRAGMA table_info(sessions)")]
    if "session_id" not in names:
        return Index(damage=f"{NAME} has no table of sessions")
    scan = _Scan(connection, names)
    rows = {_id(row): row for row in scan.all()}
    return Index(rows=rows, damage=scan.damage, connection=connection)


def _id(row: Row) -> str:
    """Return the id as the system would spell a file of that name, bytes that are no UTF-8 included."""
    value = row["session_id"]
    if isinstance(value, bytes) and value:
        return value.decode("utf-8", "surrogateescape")
    return f"row-{row['rowid']}" if value is None or value == b"" else str(value)


class _Scan:
    """Reads the whole table. SQLite gives up a query at a bad page, so ranges are halved around each failure."""

    def __init__(self, connection: sqlite3.Connection, columns: Sequence[str]) -> None:
        self._connection = connection
        self._columns = ["rowid", "has_messages", *(name for name in columns if name != _BLOB)]
        # The type is known without reading the value, which may be long, or damaged.
        has_blob = f"typeof({_BLOB}) <> 'null'" if _BLOB in columns else "0"
        quoted = ['"' + name.replace('"', '""') + '"' for name in self._columns[2:]]
        self._sql = f"SELECT rowid, {has_blob}, {', '.join(quoted)} FROM sessions WHERE rowid BETWEEN ? AND ?"
        self._failures = 0
        self.damage = ""

    def all(self) -> Sequence[Row]:
        """Return every row that can be read, in order of row id."""
        return self._between(*self._ends())

    def _ends(self) -> tuple[int, int]:
        try:
            low, high = self._connection.execute(_ENDS).fetchone()
        except sqlite3.DatabaseError as error:
            self._tell(error)
            return 1, int(self._connection.execute("PRAGMA page_count").fetchone()[0]) * _ROWS_PER_PAGE
        return (0, -1) if low is None else (low, high)

    def _between(self, low: int, high: int) -> list[Row]:
        if low > high or self._failures > _MOST_FAILURES:
            return []
        try:
            found = self._connection.execute(self._sql, (low, high)).fetchall()
        except sqlite3.DatabaseError as error:
            self._tell(error)
            middle = (low + high) // 2
            return [] if low == high else [*self._between(low, middle), *self._between(middle + 1, high)]
        return [dict(zip(self._columns, row, strict=True)) for row in found]

    def _tell(self, error: sqlite3.DatabaseError) -> None:
        if _is_in_use(error):
            raise error
        self._failures += 1
        self.damage = f"{NAME} is damaged ({error})"
