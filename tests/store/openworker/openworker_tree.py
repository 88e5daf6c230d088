"""Trees of files as openworker writes them, for tests: its index with sqlite3, its rows as JSON lines."""

from __future__ import annotations

import base64
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.ports.moving import FoundSession
from gateway.ports.sessions import SessionCopy
from gateway.store.openworker.reader import OpenworkerSource

ADDED = ("grants TEXT", "compaction TEXT", "team TEXT")
OLDEST = """
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY, workspace TEXT, model TEXT, mode TEXT, title TEXT, messages TEXT,
    updated_at TEXT DEFAULT CURRENT_TIMESTAMP
)
"""
NEWEST = """
CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY, workspace TEXT, model TEXT, mode TEXT, title TEXT, agent TEXT DEFAULT 'code',
    n_msgs INTEGER DEFAULT 0, messages TEXT, extra_roots TEXT, pinned INTEGER DEFAULT 0, archived INTEGER DEFAULT 0,
    origin TEXT, origin_label TEXT, auto_title TEXT, renamed INTEGER DEFAULT 0,
    updated_at TEXT DEFAULT CURRENT_TIMESTAMP
)
"""
ONE = "0123456789abcdef0123456789abcdef"
TWO = "fedcba9876543210fedcba9876543210"
USED = "2026-07-01 10:30:00"
USED_AT = datetime(2026, 7, 1, 10, 30, tzinfo=UTC)
ASKED_AT = datetime(2026, 7, 1, 10, 0, 0, 500_000, tzinfo=UTC)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PICTURE = b"\x89PNG\r\n\x1a\n not really"
PICTURE_URL = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
CALL = {"id": "c1", "type": "function", "function": {"name": "run_shell", "arguments": '{"command": "ls"}'}}

CONVERSATION: list[Any] = [
    {"role": "system", "content": "You are a coworker."},
    {"role": "user", "content": "What is here?", "ts": 1782900000.5, "source": {"platform": "slack"}},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "ts": 1782900001, "reasoning": "I should look."},
    {"role": "tool", "tool_call_id": "c1", "name": "run_shell", "content": "a.txt"},
    {"role": "assistant", "content": "One file.", "ts": "2026-07-01T10:00:05Z", "usage": {"input": 7}, "_display": "d"},
    {"role": "notice", "kind": "compacted", "text": "Earlier turns were summarized.", "ts": 1782900010},
    {"role": "user", "content": "Thanks"},
]


class Tree:
    """A state directory of openworker."""

    def __init__(self, directory: Path, schema: str = NEWEST, *, alters: bool = True) -> None:
        self.directory = directory
        self.index = directory / "coworker.db"
        self.folder = directory / "conversations"
        self.folder.mkdir(parents=True)
        with closing(sqlite3.connect(self.index)) as db, db:
            db.execute(schema)
            db.execute("CREATE TABLE workspaces (path TEXT PRIMARY KEY, last_used TEXT)")
            for column in ADDED if alters else ():
                db.execute(f"ALTER TABLE sessions ADD COLUMN {column}")

    def row(self, session_id: Any, **columns: Any) -> None:
        """Add a row to the index; structures are written as JSON."""
        self.rows([session_id], **columns)

    def rows(self, session_ids: list[Any], **columns: Any) -> None:
        """Add rows to the index that differ in their ids alone."""
        values = {"workspace": "/w", "model": "m", "mode": "plan", "updated_at": USED}
        values |= {name: json.dumps(v) if isinstance(v, dict | list) else v for name, v in columns.items()}
        with closing(sqlite3.connect(self.index)) as db, db:
            sql = f"INSERT INTO sessions (session_id, {', '.join(values)}) VALUES (?{', ?' * len(values)})"
            db.executemany(sql, [[session_id, *values.values()] for session_id in session_ids])

    def file(self, session_id: str, rows: list[Any] | bytes) -> Path:
        """Write the file of a session: rows, or bytes as they are."""
        path = self.folder / f"{session_id}.jsonl"
        path.write_bytes(rows if isinstance(rows, bytes) else lines(rows))
        return path

    def session(self, session_id: str, rows: list[Any] | bytes = CONVERSATION, **columns: Any) -> None:
        """Add a session with both."""
        self.row(session_id, **columns)
        self.file(session_id, rows)

    def bytes(self) -> dict[str, bytes]:
        """Return every file of the tree with what it holds."""
        return {str(path): path.read_bytes() for path in sorted(self.directory.rglob("*")) if path.is_file()}


def read(directory: Path, **options: Any) -> list[FoundSession]:
    """Return every session of a source."""
    return list(OpenworkerSource(directory, now=NOW, **options).sessions())


def only(tree: Tree, **options: Any) -> FoundSession:
    """Return the one session of a tree."""
    (found,) = read(tree.directory, **options)
    return found


def copy_of(found: FoundSession) -> SessionCopy:
    """Return the copy of a session that was read."""
    assert found.copy is not None
    return found.copy


def contents(found: FoundSession) -> list[Any]:
    """Return what the rows of a session say."""
    return [row.content for row in copy_of(found).rows]


def untouched(tree: Tree) -> list[FoundSession]:
    """Read the tree; nothing in it may have changed, nothing may be new, also while it is read."""
    before = tree.bytes()
    found = []
    for one in OpenworkerSource(tree.directory, now=NOW).sessions():
        assert len(found) > 3 or tree.bytes() == before
        found.append(one)
    assert OpenworkerSource(tree.directory, now=NOW).count() >= len([one for one in found if one.copy])
    assert tree.bytes() == before
    return found


def lines(rows: list[Any]) -> bytes:
    """Return rows as openworker writes them."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
