"""Builds homes of nanobot, in the layouts it has had."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from gateway.ports.moving import FoundSession
from gateway.ports.sessions import SessionCopy
from gateway.store.nanobot.reader import NanobotSource

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
CREATED, UPDATED = "2026-07-01T10:00:00", "2026-07-02T11:30:00.250000"
CREATED_AT = datetime(2026, 7, 1, 8, tzinfo=UTC)
UPDATED_AT = datetime(2026, 7, 2, 9, 30, 0, 250000, tzinfo=UTC)

Row = dict[str, Any]


def header(key: str | None, **fields: Any) -> Row:
    """Return a metadata row; `key` None is of a version that did not write one."""
    named = {} if key is None else {"key": key}
    return {
        "_type": "metadata", **named, "created_at": CREATED, "updated_at": UPDATED, "metadata": {},
        "last_consolidated": 0, **fields,
    }  # fmt: skip


def user(text: Any, **fields: Any) -> Row:
    """Return a row a person wrote."""
    return {"role": "user", "content": text, "timestamp": "2026-07-01T10:00:01.500000", **fields}


def assistant(text: Any, **fields: Any) -> Row:
    """Return a row the bot wrote."""
    return {"role": "assistant", "content": text, "timestamp": "2026-07-01T10:00:02", **fields}


def lines(*rows: Row) -> bytes:
    """Return rows as a file has them."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def canonical(key: str) -> str:
    """Return the name of a session's file today."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=") + ".jsonl"


def lossy(key: str) -> str:
    """Return the name of a session's file in older versions."""
    name = key.replace(":", "_")
    for character in '<>"/\\|?*':
        name = name.replace(character, "_")
    return name.strip() + ".jsonl"


@dataclass(frozen=True, slots=True)
class Tree:
    """A home of nanobot under construction."""

    home: Path

    @property
    def workspace(self) -> Path:
        return self.home / "workspace"

    @property
    def sessions(self) -> Path:
        return self.workspace / "sessions"

    @property
    def globals(self) -> Path:
        return self.home / "sessions"

    def put(self, data: bytes, name: str, folder: Path | None = None) -> Path:
        """Write a file into a directory of sessions, that of the workspace if no other is named."""
        path = (folder or self.sessions) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def session(self, key: str, *rows: Row, folder: Path | None = None, **fields: Any) -> Path:
        """Write a session as today's version names it."""
        return self.put(lines(header(key, **fields), *rows), canonical(key), folder)

    def id_folder(self, id: str, workspace: Path | None = None) -> Path:
        """Make a directory of sessions as the latest version has them, and return it."""
        path = self.globals / id
        path.mkdir(parents=True, exist_ok=True)
        (path / ".workspace").write_text(f"{workspace or self.workspace}\n")
        return path

    def found(self, directory: Path | None = None, **options: Any) -> list[FoundSession]:
        """Return what an importer finds, in the workspace if nothing else is named."""
        place = directory or self.workspace
        return list(NanobotSource(place, **{"zone": ZONE, "now": NOW, **options}).sessions())

    def copy(self, **options: Any) -> SessionCopy:
        """Return the one session of the workspace."""
        (found,) = self.found(**options)
        assert found.copy is not None, found.problem
        return found.copy
