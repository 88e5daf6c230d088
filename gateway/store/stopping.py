"""Stops: asked for beside the turn, whoever runs it, and standing until they are obeyed.

What waits in the inbox when somebody says stop is stopped too. It still becomes rows, in its order, so that nothing
that was said is lost; but on its own it starts no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from gateway.domain.errors import NotFound
from gateway.domain.inbound import Inbound
from gateway.domain.keys import SessionKey
from gateway.domain.turn import Backlog, Stopping
from gateway.store import inbox
from gateway.store.codec import from_micros
from gateway.store.database import Row, Transaction
from gateway.store.headers import find_open, header_row


def request(tx: Transaction, ref: str | SessionKey, by: str, event: Inbound | None, now: datetime) -> Stopping:
    """Stop a session's unfinished turn and what waits behind it; a repeat of the event that asked stops nothing."""
    session_id = _session(tx, ref)
    if event is not None and not inbox.note(tx, event, session_id, now):
        return Stopping.REPEAT
    if session_id is None:
        return Stopping.NOTHING
    turns = tx.execute(
        """
        UPDATE turns SET stop_requested_by = coalesce(stop_requested_by, ?)
        WHERE session_id = ? AND state IN ('running', 'waiting')
        """,
        by,
        session_id,
    )
    waiting = tx.execute(
        "UPDATE inbox SET stopped_by = coalesce(stopped_by, ?) WHERE session_id = ? AND state = 'pending'",
        by,
        session_id,
    )
    return Stopping.REQUESTED if turns or waiting else Stopping.NOTHING


def backlog(tx: Transaction, session_id: str) -> Backlog:
    """Return what waits in a session's inbox."""
    row = tx.one(
        """
        SELECT count(*) AS count, count(stopped_by) AS stopped, min(accepted_at) AS oldest, max(accepted_at) AS newest
        FROM inbox WHERE session_id = ? AND state = 'pending'
        """,
        session_id,
    )
    if row is None or not row["count"]:
        return Backlog()
    oldest, newest = from_micros(row["oldest"]), from_micros(row["newest"])
    return Backlog(count=row["count"], stopped=row["stopped"], oldest=oldest, newest=newest)


def stopped(waiting: Sequence[Row]) -> Sequence[Row]:
    """Return what of that which waits was stopped."""
    return [row for row in waiting if row["stopped_by"] is not None]


def _session(tx: Transaction, ref: str | SessionKey) -> str | None:
    if isinstance(ref, SessionKey):
        row = find_open(tx, ref)
    else:
        try:
            row = header_row(tx, ref)
        except NotFound:
            row = None
    return None if row is None else row["id"]
