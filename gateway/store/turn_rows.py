"""Turns as rows: reading one, whether it may still be written for, and what its calls cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from gateway.domain.errors import InvalidKey, LeaseLost, StopRequested
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import Mark
from gateway.domain.turn import Turn, TurnState, Usage
from gateway.ports.leases import Lease, session_lease
from gateway.store import naming
from gateway.store.codec import ROUTE, dump, from_micros, parsed_json, to_micros
from gateway.store.database import Row, Transaction
from gateway.store.guard import check_lease
from gateway.store.headers import decode_header, header_row
from gateway.store.waiting import waited

_LISTED = """
SELECT turns.* FROM turns JOIN sessions ON sessions.id = turns.session_id AND sessions.deleted_at IS NULL
WHERE {where} ORDER BY turns.started_at DESC, turns.first_seq DESC LIMIT ?
"""


def decode_turn(tx: Transaction, row: Row) -> Turn:
    """Return the turn that a row holds."""
    session = decode_header(header_row(tx, row["session_id"]))
    key = session.key
    return Turn(
        id=row["id"],
        session=session,
        # A damaged route costs the mark of which message is answered, not the answer.
        route=parsed_json(ROUTE, row["route"]) or Route(key.channel, key.chat_id, key.thread),
        attempt=row["attempt"],
        state=TurnState(row["state"]),
        started_at=from_micros(row["started_at"]),
        first_seq=row["first_seq"],
        stop_requested_by=row["stop_requested_by"],
        message_id=row["message_id"],
    )


def start(tx: Transaction, session_id: str, turn_id: str, newest: Inbound, first_seq: int, now: datetime) -> Turn:
    """Insert a running turn that answers the newest of what it claimed, and return it."""
    row = tx.one(
        """
        INSERT INTO turns
            (id, session_id, channel, route, message_id, state, attempt, first_seq, started_at, updated_at)
        VALUES (?, ?, ?, ?, ?, 'running', 1, ?, ?, ?) RETURNING *
        """,
        turn_id,
        session_id,
        newest.route.channel,
        dump(ROUTE, newest.route),
        newest.dedupe_key,
        first_seq,
        to_micros(now),
        to_micros(now),
    )
    assert row is not None
    return decode_turn(tx, row)


def move(tx: Transaction, turn: Turn, newest: Inbound) -> Turn:
    """Let the turn answer a newer message."""
    sql = "UPDATE turns SET route = ?, message_id = ? WHERE id = ?"
    tx.execute(sql, dump(ROUTE, newest.route), newest.dedupe_key, turn.id)
    return replace(turn, route=newest.route, message_id=newest.dedupe_key)


def is_suspect(row: Row) -> bool:
    """Whether an unfinished turn that nobody asked to stop was there when a process died."""
    return row["stop_requested_by"] is None and (row["state"] == TurnState.RUNNING or row["attempt"] > 1)


def resume(tx: Transaction, row: Row, now: datetime) -> Turn:
    """Let an unfinished turn run again; where its process died, that counts as an attempt."""
    died = row["state"] == TurnState.RUNNING
    tx.execute(
        "UPDATE turns SET state = 'running', waiting_until = NULL, attempt = attempt + ?, updated_at = ? WHERE id = ?",
        int(died),
        to_micros(now),
        row["id"],
    )
    turn = replace(decode_turn(tx, row), state=TurnState.RUNNING, attempt=row["attempt"] + died)
    return replace(turn, waited=waited(row))


def check(tx: Transaction, turn: Turn, lease: Lease, *, even_stopped: bool = False) -> None:
    """Raise `LeaseLost` unless the lease is held and the turn still runs; a deleted session's turn does not.

    Raise `StopRequested` if it was asked to stop, but for what may be written even then.
    """
    check_lease(tx, lease, session_lease(turn.session_id))
    row = tx.one("SELECT stop_requested_by FROM turns WHERE id = ? AND state = 'running'", turn.id)
    if row is None:
        raise LeaseLost(lease.name)
    if row["stop_requested_by"] is not None and not even_stopped:
        raise StopRequested(row["stop_requested_by"])


def set_state(tx: Transaction, turn: Turn, state: TurnState, now: datetime) -> None:
    """Write down where the turn stands; the rows of one that is set aside are hidden from the model with it."""
    tx.execute("UPDATE turns SET state = ?, updated_at = ? WHERE id = ?", state, to_micros(now), turn.id)
    if state is TurnState.SET_ASIDE:
        sql = """
        INSERT INTO message_marks (session_id, seq, mark, marked_at)
        SELECT session_id, seq, ?, ? FROM messages WHERE session_id = ? AND seq >= ? AND turn_id = ?
        ON CONFLICT DO NOTHING
        """
        tx.execute(sql, Mark.SET_ASIDE, to_micros(now), turn.session_id, turn.first_seq, turn.id)
        naming.refresh_names(tx, turn.session_id)


def listed(tx: Transaction, state: TurnState | None, session_id: str | None, limit: int) -> Sequence[Turn]:
    """Return turns of live sessions, newest first."""
    # The state is written out, as the partial index names it; it is one of ours and not of anybody's input.
    where = ["1 = 1", *([f"state = '{state.value}'"] if state else []), *(["session_id = ?"] if session_id else [])]
    values = [session_id] if session_id else []
    found = tx.all(_LISTED.format(where=" AND ".join(where)), *values, limit)
    return [turn for row in found if (turn := _readable(tx, row)) is not None]


def _readable(tx: Transaction, row: Row) -> Turn | None:
    """Return the turn, or None where the session's key is damaged; one bad record hides itself alone."""
    try:
        return decode_turn(tx, row)
    except InvalidKey:
        return None


def store_usage(tx: Transaction, turn: Turn, usage: Usage, now: datetime) -> None:
    """Write down what a call of the turn cost."""
    tx.execute(
        """
        INSERT INTO usage (turn_id, number, session_id, provider, model, input_tokens, cached_tokens, written_tokens,
                           output_tokens, counted_tokens, created_at)
        SELECT ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM usage WHERE turn_id = ?
        """,
        turn.id,
        turn.session_id,
        usage.provider,
        usage.model,
        usage.input_tokens,
        usage.cached_tokens,
        usage.written_tokens,
        usage.output_tokens,
        usage.counted_tokens,
        to_micros(now),
        turn.id,
    )
