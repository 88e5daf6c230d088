"""The inbox: every event that was accepted, once, until a turn has taken it in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from gateway.domain.inbound import Inbound, as_row
from gateway.domain.keys import Route
from gateway.domain.message import Message
from gateway.ports.sessions import NewSession
from gateway.ports.tokens import TokenCounter
from gateway.store import appending, rows
from gateway.store.codec import INBOUND, dump, to_micros
from gateway.store.database import Row, Transaction
from gateway.store.headers import IdMaker, open_session

KEYS_KEPT = timedelta(days=7)
"""How long a repeat is recognised; platforms redeliver within hours, a backlog at the most within a day."""


def store(tx: Transaction, inbound: Inbound, new: NewSession, make_id: IdMaker, now: datetime) -> str | None:
    """Store an event and return its session's id; None if it is a repeat."""
    accepted = tx.execute(
        """
        INSERT INTO inbox (channel, dedupe_key, state, sent_at, accepted_at, body) VALUES (?, ?, 'pending', ?, ?, ?)
        ON CONFLICT (channel, dedupe_key) DO NOTHING
        """,
        inbound.route.channel,
        inbound.dedupe_key,
        to_micros(inbound.sent_at),
        to_micros(now),
        dump(INBOUND, inbound),
    )
    if not accepted:
        return None
    session = open_session(tx, inbound.key, new, make_id, now)
    tx.execute(
        "UPDATE inbox SET session_id = ? WHERE channel = ? AND dedupe_key = ?",
        session.id,
        inbound.route.channel,
        inbound.dedupe_key,
    )
    return session.id


def pending(tx: Transaction, session_id: str) -> Sequence[Row]:
    """Return what waits for a session, in the platform's order of time."""
    return tx.all(
        "SELECT * FROM inbox WHERE session_id = ? AND state = 'pending' ORDER BY sent_at, arrival", session_id
    )


def claim(
    tx: Transaction, session_id: str, turn_id: str, waiting: Sequence[Row], count: TokenCounter, now: datetime
) -> tuple[Sequence[Message], Route]:
    """Turn pending events into user rows of a turn; return the rows, and the route of the newest."""
    events = [INBOUND.validate_json(row["body"]) for row in waiting]
    messages = [_counted(event, turn_id, count) for event in events]
    placed = appending.append(tx, session_id, messages, now)
    for row in waiting:
        tx.execute(
            "UPDATE inbox SET state = 'done', turn_id = ?, body = NULL WHERE arrival = ?", turn_id, row["arrival"]
        )
    return placed, events[-1].route


def forget(tx: Transaction, now: datetime) -> int:
    """Drop the keys of events that were taken in long ago."""
    return tx.execute("DELETE FROM inbox WHERE state = 'done' AND accepted_at < ?", to_micros(now - KEYS_KEPT))


def _counted(event: Inbound, turn_id: str, count: TokenCounter) -> Message:
    return rows.with_tokens(replace(as_row(event), turn_id=turn_id), count)
