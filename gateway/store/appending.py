"""Appending rows to a session: the same cost however long it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.domain.errors import NotFound
from gateway.domain.message import Message
from gateway.store import naming, rows
from gateway.store.codec import to_micros
from gateway.store.database import Transaction


def append(tx: Transaction, session_id: str, messages: Sequence[Message], now: datetime) -> int:
    """Append rows to a live session and return the seq of the first; costs the same however long the session is."""
    header = tx.one(
        """
        UPDATE sessions SET last_seq = last_seq + ?, message_count = message_count + ?, updated_at = ?
        WHERE id = ? AND deleted_at IS NULL RETURNING last_seq, preview_role, title_source
        """,
        len(messages),
        len(messages),
        to_micros(now),
        session_id,
    )
    if header is None:
        raise NotFound(f"no session has the id {session_id!r}")
    first: int = header["last_seq"] - len(messages) + 1
    for seq, row in enumerate(messages, start=first):
        rows.insert(tx, session_id, row, seq, now)
    naming.name_after(tx, session_id, header, messages)
    return first
