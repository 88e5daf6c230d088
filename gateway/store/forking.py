"""Forking: a session that begins as a copy of another's beginning."""

from __future__ import annotations

from datetime import datetime

from gateway.domain.keys import SessionKey
from gateway.domain.session import Session
from gateway.ports.sessions import NewSession
from gateway.store import naming
from gateway.store.codec import to_json
from gateway.store.database import Transaction
from gateway.store.headers import IdMaker, decode_header, header_row, open_session

BOUND_TO_PROGRESS = frozenset(
    {
        "goal_state",
        "pending_user_turn",
        "runtime_checkpoint",
        "session_handle",
        "thread_goal",
        "title",
        "title_user_edited",
    }
)
"""Metadata that describes how far the old session has come; a fork goes its own way."""

# As they are stored, damage and all, and at their places, so that every offset still means what it meant.
_COPY_ROWS = """
INSERT INTO messages (session_id, seq, v, role, kind, content, body, tokens, created_at)
SELECT ?, seq, v, role, kind, content, body, tokens, created_at FROM messages
WHERE session_id = ? AND seq < ? ORDER BY seq
"""
_COPY_MARKS = """
INSERT INTO message_marks (session_id, seq, mark, marked_at)
SELECT ?, seq, mark, marked_at FROM message_marks WHERE session_id = ? AND seq < ?
"""
_COUNT = """
UPDATE sessions SET message_count = ?, last_seq = (SELECT coalesce(max(seq), 0) FROM messages WHERE session_id = ?)
WHERE id = ?
"""


def fork(tx: Transaction, source: Session, before: int, key: SessionKey, make_id: IdMaker, now: datetime) -> Session:
    """Open a session under `key` with copies of the rows of `source` below seq `before`."""
    # A summary of rows that the fork does not have would tell it of things to come.
    keeps_summary = source.consolidated_through < before
    made: str = open_session(tx, key, _like(source, keeps_summary), make_id, now)["id"]
    copied = tx.execute(_COPY_ROWS, made, source.id, before)
    tx.execute(_COPY_MARKS, made, source.id, before)
    tx.execute(_COUNT, copied, made, made)
    naming.refresh_names(tx, made)
    if keeps_summary:
        tx.execute(
            "UPDATE sessions SET consolidated_through = ?, compaction = ? WHERE id = ?",
            source.consolidated_through,
            to_json(dict(source.compaction)),
            made,
        )
    return decode_header(header_row(tx, made))


def _like(source: Session, keeps_summary: bool) -> NewSession:
    left_behind = BOUND_TO_PROGRESS if keeps_summary else BOUND_TO_PROGRESS | {"_last_summary"}
    return NewSession(
        workspace=source.workspace,
        agent=source.agent,
        model=source.model,
        mode=source.mode,
        parent_id=source.id,
        metadata={name: value for name, value in source.metadata.items() if name not in left_behind},
    )
