"""The attic: rows that are no longer live, kept whole."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.message import Message
from gateway.ports.sessions import Retired
from gateway.store import listing, naming, rows
from gateway.store.codec import from_micros, to_micros
from gateway.store.database import Transaction

_COLUMNS = "session_id, seq, v, role, kind, content, body, turn_id, event_id, tokens, created_at"


def retire(tx: Transaction, session_id: str, seqs: Sequence[int], reason: str, now: int) -> int:
    """Move rows out of the live ones, but for those of a turn that still runs; return how many there were."""
    running = tx.one("SELECT first_seq FROM turns WHERE session_id = ? AND state IN ('running', 'waiting')", session_id)
    moved = 0
    for seq in seqs if running is None else [seq for seq in seqs if seq < running["first_seq"]]:
        moved += tx.execute(
            f"INSERT INTO attic ({_COLUMNS}, reason, moved_at) SELECT {_COLUMNS}, ?, ? FROM messages "
            "WHERE session_id = ? AND seq = ?",
            reason,
            now,
            session_id,
            seq,
        )
        tx.execute("DELETE FROM messages WHERE session_id = ? AND seq = ?", session_id, seq)
    tx.execute("UPDATE sessions SET message_count = message_count - ? WHERE id = ?", moved, session_id)
    naming.refresh_names(tx, session_id)
    return moved


def insert(tx: Transaction, session_id: str, retired: Retired) -> None:
    """Insert a row of the attic as it was elsewhere."""
    moment = to_micros(retired.moved_at)
    values = (session_id, retired.row.seq, *rows.columns(retired.row, retired.moved_at), retired.reason, moment)
    tx.execute(f"INSERT INTO attic ({_COLUMNS}, reason, moved_at) VALUES ({', '.join('?' * len(values))})", *values)


def everything(tx: Transaction, session_id: str) -> Sequence[Retired]:
    """Return all rows of the attic in order of seq, each with why and when it was moved."""
    found = tx.all("SELECT * FROM attic WHERE session_id = ? ORDER BY seq, id", session_id)
    hidden = listing.marks(tx, session_id, found[0]["seq"], found[-1]["seq"]) if found else {}
    return [
        Retired(
            row=rows.decode(row, hidden.get(row["seq"], frozenset())),
            reason=row["reason"],
            moved_at=from_micros(row["moved_at"]),
        )
        for row in found
    ]


def page(tx: Transaction, session_id: str, after: int, limit: int) -> Sequence[Message]:
    """Return rows of the attic in order of seq, with their marks."""
    found = tx.all(
        "SELECT * FROM attic WHERE session_id = ? AND seq > ? ORDER BY seq, id LIMIT ?", session_id, after, limit
    )
    if not found:
        return ()
    hidden = listing.marks(tx, session_id, found[0]["seq"], found[-1]["seq"])
    return [rows.decode(row, hidden.get(row["seq"], frozenset())) for row in found]
