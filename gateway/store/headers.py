"""Session headers to and from their columns, and the statements on them that other modules need too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from gateway.domain.errors import NotFound
from gateway.domain.keys import SessionKey
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import NewSession
from gateway.store.codec import ORIGIN, dump, from_json, from_micros, maybe_from_micros, parsed_json, to_json, to_micros
from gateway.store.database import Row, Transaction

IdMaker = Callable[[], str]

_JSON_DEFAULTS: Mapping[str, Any] = {"extra_roots": [], "grants": {}, "compaction": {}, "metadata": {}}

_INSERT = """
INSERT INTO sessions (id, key, channel, workspace, agent, model, mode, origin, origin_kind, parent_id, metadata,
                      created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) WHERE closed_at IS NULL AND deleted_at IS NULL DO NOTHING
"""


def open_session(tx: Transaction, key: SessionKey, new: NewSession, make_id: IdMaker, now: datetime) -> Row:
    """Return the row of the open session of `key`, made from `new` if there is none."""
    if (row := find_open(tx, key)) is not None:
        return row
    _insert(tx, key, new, make_id(), to_micros(now))
    row = find_open(tx, key)
    assert row is not None
    return row


def _insert(tx: Transaction, key: SessionKey, new: NewSession, id: str, moment: int) -> None:
    origin = new.origin
    tx.execute(
        _INSERT,
        id,
        str(key),
        key.channel,
        new.workspace,
        new.agent,
        new.model,
        new.mode,
        dump(ORIGIN, origin) if origin else None,
        origin.kind if origin else None,
        new.parent_id,
        to_json(dict(new.metadata)),
        moment,
        moment,
    )


def find_open(tx: Transaction, key: SessionKey) -> Row | None:
    """Return the row of the open session of `key`, or None."""
    return tx.one("SELECT * FROM sessions WHERE key = ? AND closed_at IS NULL AND deleted_at IS NULL", str(key))


def header_row(tx: Transaction, session_id: str) -> Row:
    """Return the row of a session that is not deleted; raise `NotFound`."""
    row = tx.one("SELECT * FROM sessions WHERE id = ? AND deleted_at IS NULL", session_id)
    if row is None:
        raise NotFound(f"no session has the id {session_id!r}")
    return row


def decode_header(row: Row) -> Session:
    """Return the header a row holds; a damaged JSON column reads as empty."""
    structures = {name: from_json(row[name], default) for name, default in _JSON_DEFAULTS.items()}
    structures["extra_roots"] = tuple(structures["extra_roots"])
    plain = ("id", "workspace", "agent", "model", "mode", "title", "preview", "message_count", "parent_id")
    return Session(
        key=SessionKey.parse(row["key"]),
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
        closed_at=maybe_from_micros(row["closed_at"]),
        title_source=TitleSource(row["title_source"]),
        pinned=bool(row["pinned"]),
        archived=bool(row["archived"]),
        origin=parsed_json(ORIGIN, row["origin"]),
        consolidated_through=row["consolidated_through"],
        replay_from=row["replay_from"],
        **{name: row[name] for name in plain},
        **structures,
    )


def encode_field(name: str, value: Any) -> Any:
    """Return a header field as its column holds it."""
    if name == "extra_roots":
        return to_json([dict(root) for root in value])
    if name in _JSON_DEFAULTS:
        return to_json(dict(value))
    return int(value) if isinstance(value, bool) else value
