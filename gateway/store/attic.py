"""The attic: rows that are no longer live, kept whole."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.message import Message
from gateway.store import naming, rows
from gateway.store.database import Transaction

_COLUMNS = "session_id, seq, v, role, kind, content, body, turn_id, event_id, tokens, created_at"


def retire(tx: Transaction, session_id: str, seqs: Sequence[int], reason: str, now: int) -> int:
    """Move rows out of the live ones; return how many there were."""
    moved = 0
    for seq in seqs:
        moved += tx.execute(
            f"INSERT INTO attic ({_COLUMNS}, reason, moved_at) SELECT {_COLUMNS}, ?, ? FROM messages "
            "WHERE session_id = ? AND seq = ?",
            reason,
            now,
            session_id,
            seq,
        )
        tx.execute("DELETE FROM message_marks WHERE session_id = ? AND seq = ?", session_id, seq)
        tx.execute("DELETE FROM messages WHERE session_id = ? AND seq = ?", session_id, seq)
    tx.execute("UPDATE sessions SET message_count = message_count - ? WHERE id = ?", moved, session_id)
    naming.refresh_preview(tx, session_id)
    return moved


def page(tx: Transaction, session_id: str, after: int, limit: int) -> Sequence[Message]:
    """Return rows of the attic in order of seq."""
    found = tx.all(
        "SELECT * FROM attic WHERE session_id = ? AND seq > ? ORDER BY seq, id LIMIT ?", session_id, after, limit
    )
    return [rows.decode(row) for row in found]
