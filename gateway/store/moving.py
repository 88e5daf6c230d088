"""Carrying sessions whole: out of a store, into one, and from one key to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from gateway.domain.errors import Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.session import Session
from gateway.domain.titles import ROWS_LOOKED_AT, TitleSource, preview
from gateway.ports.sessions import Restored, SessionCopy
from gateway.ports.tokens import TokenCounter
from gateway.store import attic, listing, naming, rows
from gateway.store.codec import ORIGIN, dump, to_micros
from gateway.store.database import Row, Transaction
from gateway.store.headers import decode_header, encode_field, find_open, header_row

_EVERYTHING = 1 << 62
CHUNK = 5_000
"""How many rows are restored in one transaction; a longer one would keep a running gateway from writing."""
_TAKEN_OVER = "expected to be the only one that takes this session in, and another import does so now; run it again"

_ENCODED = (
    "workspace", "agent", "model", "mode", "extra_roots", "grants", "pinned", "archived", "consolidated_through",
    "replay_from", "compaction", "metadata",
)  # fmt: skip
_WAITS = """
SELECT 1 FROM turns WHERE session_id = ? AND state IN ('running', 'waiting')
UNION ALL SELECT 1 FROM inbox WHERE session_id = ? AND state = 'pending' LIMIT 1
"""
_MARK = "INSERT INTO message_marks (session_id, seq, mark, marked_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


def attach(tx: Transaction, session_id: str, key: SessionKey, closing: str | None, now: datetime) -> Session:
    """Make the session the open one of `key`, in place of `closing`; raise `Refused` where that cannot be now."""
    header_row(tx, session_id)
    there = find_open(tx, key)
    if there is not None and there["id"] not in (session_id, closing):
        raise Refused(f"expected a key without an open session, got {str(key)!r}, whose open one is {there['id']}")
    if tx.one(_WAITS, session_id, session_id) is not None:
        raise Refused(f"expected a session at rest, got {session_id!r}, which is answering; try again when it is done")
    if there is not None and there["id"] != session_id:
        tx.execute("UPDATE sessions SET closed_at = ? WHERE id = ?", to_micros(now), there["id"])
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
    if known is not None and not _is_unfinished(known):
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
    _insert_rows(tx, carried, now)
    _name(tx, session, carried.rows)
    tx.execute("UPDATE sessions SET revision = ? WHERE id = ?", session.revision, session.id)
    return restored


def _insert_rows(tx: Transaction, carried: SessionCopy, now: datetime) -> None:
    id = carried.session.id
    for row in carried.rows:
        rows.insert(tx, id, row, row.seq, now)
    for retired in carried.attic:
        attic.insert(tx, id, retired)
    for row in [*carried.rows, *(retired.row for retired in carried.attic)]:
        for mark in sorted(row.marks):
            tx.execute(_MARK, id, row.seq, mark, to_micros(row.created_at or now))


def chunks(carried: SessionCopy) -> Iterator[SessionCopy]:
    """Yield the rows of a copy, then those of its attic, as copies of a bounded size."""
    for start in range(0, len(carried.rows), CHUNK):
        yield replace(carried, rows=carried.rows[start : start + CHUNK], attic=())
    for start in range(0, len(carried.attic), CHUNK):
        yield replace(carried, rows=(), attic=carried.attic[start : start + CHUNK])


def begin(tx: Transaction, carried: SessionCopy, token: int) -> Restored:
    """Add the header of a session whose rows follow, hidden as a deleted one is until `finish`.

    What is unfinished has a negative time of deletion, the token of who is at it. Its title comes last, so that it is
    not found before, and that nothing is left of it where the header is removed again.
    """
    restored = would_restore(tx, carried)
    if restored in (Restored.KNOWN, Restored.DELETED):
        return restored
    if tx.one("SELECT 1 FROM sessions WHERE id = ?", carried.session.id) is not None:
        raise Refused(_TAKEN_OVER)
    untitled = replace(carried.session, title="", title_source=TitleSource.NONE)
    _insert_header(tx, replace(carried, session=untitled), closed_at=carried.session.updated_at)
    tx.execute("UPDATE sessions SET deleted_at = ? WHERE id = ?", token, carried.session.id)
    return restored


def add(tx: Transaction, chunk: SessionCopy, token: int, now: datetime) -> None:
    """Add some rows of the session that was begun with this token."""
    _check_token(tx, chunk.session.id, token)
    _insert_rows(tx, chunk, now)


def finish(tx: Transaction, carried: SessionCopy, token: int) -> Restored:
    """Show the session, of which all rows are there now."""
    session = carried.session
    _check_token(tx, session.id, token)
    restored = would_restore(tx, carried)
    closed_at = session.updated_at if restored is Restored.ADDED_CLOSED else session.closed_at
    sql = "UPDATE sessions SET deleted_at = NULL, closed_at = ?, title = ?, title_source = ? WHERE id = ?"
    closed = None if closed_at is None else to_micros(closed_at)
    tx.execute(sql, closed, session.title, session.title_source, session.id)
    _name(tx, session, carried.rows)
    tx.execute("UPDATE sessions SET revision = ? WHERE id = ?", session.revision, session.id)
    return restored


def take_over(tx: Transaction, session_id: str, token: int) -> None:
    """Make what a restore left of a session this token's, so that whoever may still be at it stops."""
    tx.execute("UPDATE sessions SET deleted_at = ? WHERE id = ? AND deleted_at < 0", token, session_id)


def discard(tx: Transaction, session_id: str, token: int) -> bool:
    """Remove some rows of an unfinished session, at last its header; return whether there is more."""
    _check_token(tx, session_id, token)
    for table in ("messages", "attic"):
        some = f"SELECT id FROM {table} WHERE session_id = ? LIMIT {CHUNK}"
        if tx.execute(f"DELETE FROM {table} WHERE id IN ({some})", session_id):
            return True
    tx.execute("DELETE FROM message_marks WHERE session_id = ?", session_id)
    tx.execute("DELETE FROM sessions WHERE id = ?", session_id)
    return False


def is_unfinished(tx: Transaction, session_id: str) -> bool:
    """Return whether something is left of a restore that was begun."""
    known = tx.one("SELECT deleted_at FROM sessions WHERE id = ?", session_id)
    return known is not None and _is_unfinished(known)


def _is_unfinished(header: Row) -> bool:
    return header["deleted_at"] is not None and header["deleted_at"] < 0


def _check_token(tx: Transaction, session_id: str, token: int) -> None:
    if tx.one("SELECT 1 FROM sessions WHERE id = ? AND deleted_at = ?", session_id, token) is None:
        raise Refused(_TAKEN_OVER)


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
