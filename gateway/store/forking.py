"""Forking: a session that begins as a copy of another's beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from gateway.domain.keys import SessionKey
from gateway.domain.session import Session
from gateway.ports.sessions import NewSession
from gateway.store import appending, listing, rows
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

_COPY_MARKS = """
INSERT INTO message_marks (session_id, seq, mark, marked_at)
SELECT ?, ?, mark, marked_at FROM message_marks WHERE session_id = ? AND seq = ?
"""


def fork(tx: Transaction, source: Session, before: int, key: SessionKey, make_id: IdMaker, now: datetime) -> Session:
    """Open a session under `key` with copies of the rows of `source` below seq `before`."""
    kept = tx.all("SELECT * FROM messages WHERE session_id = ? AND seq < ? ORDER BY seq", source.id, before)
    hidden = listing.marks(tx, source.id, 0, before)
    # A summary of rows that the fork does not have would tell it of things to come.
    keeps_summary = source.consolidated_through < before
    made: str = open_session(tx, key, _like(source, keeps_summary), make_id, now)["id"]
    copies = [
        # With their marks, so that nothing hidden becomes the fork's title or preview.
        replace(rows.decode(row, hidden.get(row["seq"], frozenset())), turn_id=None, event_id=None)
        for row in kept
    ]
    if copies:
        appending.append(tx, made, copies, now)
    for place, row in enumerate(kept, start=1):
        tx.execute(_COPY_MARKS, made, place, source.id, row["seq"])
    if keeps_summary:
        _keep_summary(tx, made, source, [row["seq"] for row in kept])
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


def _keep_summary(tx: Transaction, fork_id: str, source: Session, seqs: Sequence[int]) -> None:
    tx.execute(
        "UPDATE sessions SET consolidated_through = ?, compaction = ? WHERE id = ?",
        sum(seq <= source.consolidated_through for seq in seqs),
        to_json(dict(source.compaction)),
        fork_id,
    )
