"""Turns that wait: for whom, until when, and whether they may go on."""

from __future__ import annotations

from gateway.domain.turn import RESUME, TurnState, Waiting
from gateway.store.codec import from_json, to_json, to_micros
from gateway.store.database import Row, Transaction

UNFINISHED = "SELECT * FROM turns WHERE session_id = ? AND state IN ('running', 'waiting')"
_PENDING = "SELECT 1 FROM inbox WHERE session_id = ? AND state = 'pending' AND arrival > ? LIMIT 1"

DUE = """
SELECT session_id, min(since) AS since FROM (
    SELECT session_id, accepted_at AS since FROM inbox AS input
    WHERE state = 'pending' AND channel IN ({channels}) AND NOT EXISTS (
        SELECT 1 FROM turns WHERE turns.session_id = input.session_id
        AND turns.state IN ('running', 'waiting') AND turns.state = 'waiting' AND turns.waiting_for <> 'resume'
        AND (turns.waiting_after IS NULL OR input.arrival <= turns.waiting_after)
        AND (turns.waiting_until IS NULL OR turns.waiting_until > ?))
    UNION ALL
    SELECT session_id, updated_at AS since FROM turns
    WHERE state IN ('running', 'waiting') AND channel IN ({channels})
    AND (state = 'running' OR waiting_for = 'resume' OR waiting_until <= ? OR stop_requested_by IS NOT NULL)
) AS work
WHERE NOT EXISTS (SELECT 1 FROM leases WHERE name = 'session:' || work.session_id AND expires_at > ?)
GROUP BY session_id ORDER BY since LIMIT ?
"""
"""Unfinished states are named as the partial index names them, or each sweep would read every turn there ever was."""


def set_down(tx: Transaction, turn_id: str, waiting: Waiting) -> None:
    """Write down what a turn waits for.

    One that is set down before it has written anything keeps what it had waited for, and may go on at once.
    """
    if waiting.reason == RESUME:
        sql = "UPDATE turns SET waiting_until = 0 WHERE id = ? AND waiting_for IS NOT NULL AND waiting_for <> ?"
        if tx.execute(sql, turn_id, RESUME):
            return
    sql = """
    UPDATE turns SET waiting_for = ?, waiting_details = ?, waiting_until = ?, waiting_after = ? WHERE id = ?
    """
    until = None if waiting.until is None else to_micros(waiting.until)
    # What had come already when the question was put is no answer to it.
    newest = tx.one("SELECT coalesce(max(arrival), 0) AS arrival FROM inbox")
    after = newest["arrival"] if newest and waiting.or_message else None
    tx.execute(sql, waiting.reason, to_json(dict(waiting.details)), until, after, turn_id)


def has_work(tx: Transaction, session_id: str, now: int) -> bool:
    """Return whether a turn of the session may run now."""
    unfinished = tx.one(UNFINISHED, session_id)
    if unfinished is not None:
        return is_resumable(tx, unfinished, now)
    return tx.one(_PENDING, session_id, 0) is not None


def is_resumable(tx: Transaction, row: Row, now: int) -> bool:
    """Return whether an unfinished turn may go on: it died, was set down or stopped, waited enough, or was answered."""
    if row["state"] == TurnState.RUNNING or row["waiting_for"] == RESUME or row["stop_requested_by"] is not None:
        return True
    if row["waiting_until"] is not None and row["waiting_until"] <= now:
        return True
    after = row["waiting_after"]
    return after is not None and tx.one(_PENDING, row["session_id"], after) is not None


def waited(row: Row) -> Waiting | None:
    """Return what a turn that goes on had waited for, or None if it was only set down.

    It is known until the turn writes something, so that a death right after it went on does not lose it.
    """
    if row["waiting_for"] in (None, RESUME):
        return None
    return Waiting(reason=row["waiting_for"], details=from_json(row["waiting_details"], {}, "choice", row["id"]))
