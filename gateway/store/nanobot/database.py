"""nanobot's latest way of keeping sessions: all those of a workspace in one SQLite file.

A session of it is given out as the file of JSON lines it would be, so that there is one way in which rows are read and
damage is dealt with. What is opened is a copy.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.domain.text import whole
from gateway.store.importers.sqlite import copied
from gateway.store.nanobot.files import DATABASE, Entry, Folder
from gateway.store.nanobot.names import METADATA, PROVIDER_STATE, storage_name

_HEADER = "SELECT created_at, updated_at, metadata, last_archived, provider_state FROM sessions WHERE key = ?"
_MESSAGES = "SELECT record FROM messages WHERE session_key = ? ORDER BY position"
_CHECKPOINT = "SELECT record FROM checkpoints WHERE session_key = ?"
_WAITING = "SELECT kind, record FROM pending_inputs WHERE session_key = ? ORDER BY kind, position"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseEntry(Entry):
    """A session of a database, under the name that its own file would have."""

    key: str
    changed: float
    connection: sqlite3.Connection

    @property
    def is_database(self) -> bool:
        """Whether the session is one of a database, into which nanobot moved those of the files beside it."""
        return True

    def read(self) -> tuple[bytes, float]:
        """Return the session as a file of JSON lines; raise `OSError` where the database does not give it."""
        try:
            return b"\n".join(_lines(self.connection, self.key)), self.changed
        except (sqlite3.Error, RecursionError) as error:
            raise OSError(0, f"its database is damaged: {error}") from error


@contextmanager
def opened(folder: Folder) -> Iterator[list[DatabaseEntry]]:
    """Give out the sessions of a folder's database, none where there is none; raise `OSError` if it is damaged."""
    path = folder.path / DATABASE
    if not os.path.lexists(path):
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="trunkline-import-") as place:
        copy, changed = copied(path, Path(place)), path.stat().st_mtime
        # The sessions may be asked for by one thread after another, though never by two at once.
        with closing(sqlite3.connect(copy, check_same_thread=False)) as connection:
            connection.text_factory = _text
            yield _entries(folder, connection, changed)


def _entries(folder: Folder, connection: sqlite3.Connection, changed: float) -> list[DatabaseEntry]:
    try:
        keys = [key for (key,) in connection.execute("SELECT key FROM sessions ORDER BY key") if isinstance(key, str)]
    except sqlite3.Error as error:
        raise OSError(0, str(error)) from error
    return [
        DatabaseEntry(
            folder=folder, name=f"{DATABASE}:{key}", stem=storage_name(key), key=key, changed=changed,
            connection=connection,
        )
        for key in keys
    ]  # fmt: skip


def _lines(connection: sqlite3.Connection, key: str) -> Iterator[bytes]:
    header = connection.execute(_HEADER, (key,)).fetchone()
    if header is None:
        raise sqlite3.DataError("its key is no text")
    created_at, updated_at, metadata, archived, state = header
    known = {**_object(metadata), **_waiting(connection, key)}
    times = {"created_at": created_at, "updated_at": updated_at}
    yield _line({"_type": METADATA, "key": key, **times, METADATA: known, "last_archived": archived})
    if state is not None:
        yield _line({"_type": PROVIDER_STATE, "state": _object(state) or state})
    yield from (_record(record) for (record,) in connection.execute(_MESSAGES, (key,)))


def _waiting(connection: sqlite3.Connection, key: str) -> dict[str, Any]:
    """Return what an unfinished turn left, where older versions have it: in the metadata."""
    found: dict[str, Any] = {}
    for (record,) in connection.execute(_CHECKPOINT, (key,)):
        found["runtime_checkpoint"] = _object(record)
    for kind, record in connection.execute(_WAITING, (key,)):
        found.setdefault(str(kind), []).append(_object(record))
    return found


def _object(record: Any) -> dict[str, Any]:
    try:
        value = json.loads(record)
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, default=repr).encode()


def _record(record: Any) -> bytes:
    """Return a stored row as one line; line ends in it can only be of its layout."""
    return str(record).replace("\n", " ").encode(errors="replace")


def _text(data: bytes) -> str:
    return whole(data.decode(errors="replace"))
