"""Carrying sessions whole: out of a store, into one, and from one key to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from gateway.domain.errors import Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.session import Session
from gateway.domain.titles import ROWS_LOOKED_AT, preview
from gateway.ports.sessions import Restored, SessionCopy
from gateway.ports.tokens import TokenCounter
from gateway.store import attic, listing, naming, rows
from gateway.store.codec import ORIGIN, dump, to_micros
from gateway.store.database import Transaction
from gateway.store.headers import decode_header, encode_field, find_open, header_row

_EVERYTHING = 1 << 62

_ENCODED = (
    "workspace", "agent", "model", "mode", "extra_roots", "grants", "pinned", "archived", "consolidated_through",
    "replay_from", "compaction", "metadata",
)  # fmt: skip
_WAITS = """
SELECT 1 FROM turns WHERE session_id = ? AND state IN ('running', 'waiting')
UNION ALL SELECT 1 FROM inbox WHERE session_id = ? AND state = 'pending' LIMIT 1
"""
_MARK = "INSERT INTO message_marks (session_id, seq, mark, marked_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


def attach(tx: Transaction, session_id: str, key: SessionKey) -> Session:
    """Make the session the open one of `key`; raise `Refused` where that cannot be now."""
    header_row(tx, session_id)
    there = find_open(tx, key)
    if there is not None and there["id"] != session_id:
        raise Refused(f"expected a key without an open session, got {str(key)!r}, whose open one is {there['id']}")
    if tx.one(_WAITS, session_id, session_id) is not None:
        raise Refused(f"expected a session at rest, got {session_id!r}, which is answering; try again when it is done")
    sql = "UPDATE sessions SET key = ?, channel = ?, closed_at = NULL WHERE id = ?"
    tx.execute(sql, str(key), key.channel, session_id)
    return decode_header(header_row(tx, session_id))


def copy(tx: Transaction, session_id: str) -> SessionCopy:
    """Return everything that is kept of a session."""
    return SessionCopy(
        session=decode_header(header_row(tx, session_id)),
        rows=tuple(listing.page(tx, session_id, before=None, after=0, limit=_EVERYTHING)),
        attic=tuple(attic.everything(tx, session_id)),
    )


def counted_copy(carried: SessionCopy, count: TokenCounter) -> SessionCopy:
    """Return the copy with every row counted."""
    return replace(
        carried,
        rows=[rows.counted(row, count) for row in carried.rows],
        attic=[replace(retired, row=rows.counted(retired.row, count)) for retired in carried.attic],
    )


def would_restore(tx: Transaction, carried: SessionCopy) -> Restored:
    """Return what `restore` would make of the copy."""
    session = carried.session
    known = tx.one("SELECT deleted_at FROM sessions WHERE id = ?", session.id)
    if known is not None:
        return Restored.KNOWN if known["deleted_at"] is None else Restored.DELETED
    is_taken = session.closed_at is None and find_open(tx, session.key) is not None
    return Restored.ADDED_CLOSED if is_taken else Restored.ADDED


def restore(tx: Transaction, carried: SessionCopy, now: datetime) -> Restored:
    """Add a session as the copy has it; its rows must be counted."""
    session = carried.session
    restored = would_restore(tx, carried)
    if restored in (Restored.KNOWN, Restored.DELETED):
        return restored
    closed_at = session.updated_at if restored is Restored.ADDED_CLOSED else session.closed_at
    _insert_header(tx, carried, closed_at=closed_at)
    for row in carried.rows:
        rows.insert(tx, session.id, row, row.seq, now)
    for retired in carried.attic:
        attic.insert(tx, session.id, retired)
    for row in [*carried.rows, *(retired.row for retired in carried.attic)]:
        for mark in sorted(row.marks):
            tx.execute(_MARK, session.id, row.seq, mark, to_micros(row.created_at or now))
    _name(tx, session, carried.rows)
    tx.execute("UPDATE sessions SET revision = ? WHERE id = ?", session.revision, session.id)
    return restored


def _insert_header(tx: Transaction, carried: SessionCopy, *, closed_at: datetime | None) -> None:
    session = carried.session
    origin = session.origin
    last_seq = max((row.seq for row in [*carried.rows, *(retired.row for retired in carried.attic)]), default=0)
    values = {
        "id": session.id,
        "key": str(session.key),
        "channel": session.key.channel,
        "title": session.title,
        "title_source": session.title_source,
        "message_count": len(carried.rows),
        "last_seq": last_seq,
        "created_at": to_micros(session.created_at),
        "updated_at": to_micros(session.updated_at),
        "closed_at": None if closed_at is None else to_micros(closed_at),
        "origin": dump(ORIGIN, origin) if origin else None,
        "origin_kind": origin.kind if origin else None,
        "parent_id": session.parent_id,
        **{name: encode_field(name, getattr(session, name)) for name in _ENCODED},
    }
    places = ", ".join("?" * len(values))
    tx.execute(f"INSERT INTO sessions ({', '.join(values)}) VALUES ({places})", *values.values())


def _name(tx: Transaction, session: Session, kept: Sequence[Message]) -> None:
    naming.refresh_names(tx, session.id)
    if session.preview:
        # It may stand further in than a refresh looks.
        asked = preview(row for row in kept[:ROWS_LOOKED_AT] if row.role is Role.USER)
        role = Role.USER if asked == session.preview else Role.ASSISTANT
        tx.execute("UPDATE sessions SET preview = ?, preview_role = ? WHERE id = ?", session.preview, role, session.id)
