"""The inbox: every event that was accepted, once, until a turn has taken it in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from loguru import logger

from gateway.domain.errors import Overfull
from gateway.domain.inbound import Inbound, as_row
from gateway.domain.message import Message
from gateway.ports.sessions import NewSession
from gateway.store import appending
from gateway.store.codec import INBOUND, dump, parsed_json, to_micros
from gateway.store.database import Row, Transaction
from gateway.store.headers import IdMaker, open_session

KEYS_KEPT = timedelta(days=7)
"""How long a repeat is recognised; platforms redeliver within hours, a backlog at the most within a day."""


_INSERT = """
INSERT INTO inbox (channel, dedupe_key, session_id, state, sent_at, accepted_at, tokens, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (channel, dedupe_key) DO NOTHING
"""


def store(
    tx: Transaction, inbound: Inbound, tokens: int, new: NewSession, make_id: IdMaker, now: datetime, most: int | None
) -> str | None:
    """Store an event, whose row will cost `tokens`, and return its session's id; None if it is a repeat.

    Raises `Overfull` where `most` events wait already.
    """
    if _is_known(tx, inbound):
        return None
    session_id: str = open_session(tx, inbound.key, new, make_id, now)["id"]
    if most is not None:
        _check_room(tx, session_id, most)
    _insert(tx, inbound, session_id, "pending", now, tokens, dump(INBOUND, inbound))
    return session_id


def note(tx: Transaction, event: Inbound, session_id: str | None, now: datetime) -> bool:
    """Remember an event that was acted upon at once; return False if it is a repeat."""
    return _insert(tx, event, session_id, "done", now, 0, None)


def _check_room(tx: Transaction, session_id: str, most: int) -> None:
    sql = "SELECT count(*) AS count, min(arrival) AS first FROM inbox WHERE session_id = ? AND state = 'pending'"
    waiting = tx.one(sql, session_id)
    if waiting is not None and waiting["count"] >= most:
        oldest = tx.one("SELECT dedupe_key FROM inbox WHERE arrival = ?", waiting["first"])
        raise Overfull(most, oldest["dedupe_key"] if oldest else "")


def _is_known(tx: Transaction, inbound: Inbound) -> bool:
    sql = "SELECT 1 FROM inbox WHERE channel = ? AND dedupe_key = ?"
    return tx.one(sql, inbound.route.channel, inbound.dedupe_key) is not None


def _insert(
    tx: Transaction, event: Inbound, session_id: str | None, state: str, now: datetime, tokens: int, body: str | None
) -> bool:
    values = (to_micros(event.sent_at), to_micros(now), tokens, body)
    return tx.execute(_INSERT, event.route.channel, event.dedupe_key, session_id, state, *values) == 1


def pending(tx: Transaction, session_id: str) -> Sequence[Row]:
    """Return what waits for a session, in the platform's order of time."""
    return tx.all(
        "SELECT * FROM inbox WHERE session_id = ? AND state = 'pending' ORDER BY sent_at, arrival", session_id
    )


def claim(
    tx: Transaction, session_id: str, turn_id: str, waiting: Sequence[Row], now: datetime
) -> tuple[Sequence[Message], Inbound] | None:
    """Turn pending events into user rows of a turn; return the rows, and the newest of the events.

    Returns None if none of them can become a row: an event that is a row already (its key was forgotten, and it came
    once more) is done, and one that cannot be read is set aside with its body.
    """
    claimed: list[tuple[Row, Inbound]] = []
    for row in waiting:
        event = parsed_json(INBOUND, row["body"])
        if event is None:
            tx.execute("UPDATE inbox SET state = 'set aside' WHERE arrival = ?", row["arrival"])
            logger.bind(session_id=session_id, event=row["dedupe_key"]).warning(
                "an event that cannot be read is set aside"
            )
        elif _is_row(tx, session_id, event):
            _done(tx, row, None)
        else:
            claimed.append((row, event))
    if not claimed:
        return None
    added = [replace(as_row(event), turn_id=turn_id, tokens=row["tokens"]) for row, event in claimed]
    first = appending.append(tx, session_id, added, now)
    for row, _ in claimed:
        _done(tx, row, turn_id)
    return [replace(row, seq=seq) for seq, row in enumerate(added, start=first)], claimed[-1][1]


def forget(tx: Transaction, now: datetime) -> int:
    """Drop the keys of events that were taken in long ago."""
    return tx.execute("DELETE FROM inbox WHERE state = 'done' AND accepted_at < ?", to_micros(now - KEYS_KEPT))


def _is_row(tx: Transaction, session_id: str, event: Inbound) -> bool:
    return any(
        tx.one(f"SELECT 1 FROM {table} WHERE session_id = ? AND event_id = ?", session_id, event.event_id) is not None
        for table in ("messages", "attic")
    )


def _done(tx: Transaction, row: Row, turn_id: str | None) -> None:
    tx.execute("UPDATE inbox SET state = 'done', turn_id = ?, body = NULL WHERE arrival = ?", turn_id, row["arrival"])
