"""Deliveries and parts to and from their columns, and the statements that turns need too."""

from __future__ import annotations

from datetime import datetime

from gateway.domain.keys import Route, SessionKey
from gateway.domain.outbound import Delivery, DeliveryState, NewDelivery, PartState, StoredPart
from gateway.store.codec import (
    OUTBOUND,
    PART,
    REF,
    ROUTE,
    dump,
    from_micros,
    maybe_from_micros,
    parsed_json,
    to_micros,
)
from gateway.store.database import Row, Transaction


def enqueue(tx: Transaction, delivery: NewDelivery, id: str, now: datetime) -> bool:
    """Store a delivery at the end of its lane; return False for a repeat."""
    added = tx.execute(
        """
        INSERT INTO outbox (id, dedupe_key, lane, channel, route, session_id, turn_id, state, created_at, body)
        VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?) ON CONFLICT (dedupe_key) DO NOTHING
        """,
        id,
        delivery.dedupe_key,
        delivery.route.lane,
        delivery.route.channel,
        dump(ROUTE, delivery.route),
        delivery.session_id,
        delivery.turn_id,
        to_micros(now),
        dump(OUTBOUND, delivery.outbound),
    )
    return added == 1


def read(tx: Transaction, row: Row) -> Delivery:
    """Return the delivery a row holds, with its parts; what is damaged of it is missing."""
    parts = tx.all("SELECT * FROM outbox_parts WHERE delivery_id = ? ORDER BY number", row["id"])
    return Delivery(
        id=row["id"],
        route=parsed_json(ROUTE, row["route"]) or _lanes_route(row["lane"]),
        state=DeliveryState(row["state"]) if row["state"] in list(DeliveryState) else DeliveryState.DEAD,
        created_at=from_micros(row["created_at"]),
        outbound=parsed_json(OUTBOUND, row["body"]),
        parts=tuple(read_part(part) for part in parts),
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        attempts=row["attempts"],
        not_before=maybe_from_micros(row["not_before"]),
        error=row["error"],
    )


def read_sendable(tx: Transaction, row: Row) -> Delivery | None:
    """Return the delivery a row holds, or None if what is to be sent of it cannot be read."""
    if parsed_json(ROUTE, row["route"]) is None:
        return None
    delivery = read(tx, row)
    unfinished = [part for part in delivery.parts if part.state is not PartState.DONE]
    if delivery.parts:
        return delivery if all(part.part is not None for part in unfinished) else None
    return delivery if delivery.outbound is not None else None


def read_part(row: Row) -> StoredPart:
    """Return the part a row holds. One in a state that is none may have been opened, so it is looked for."""
    state = PartState(row["state"]) if row["state"] in list(PartState) else PartState.OPENING
    since = maybe_from_micros(row["opening_since"])
    return StoredPart(
        delivery_id=row["delivery_id"],
        index=row["number"],
        state=state,
        part=parsed_json(PART, row["body"]),
        ref=parsed_json(REF, row["ref"]),
        hash=row["hash"],
        opening_since=since or (from_micros(0) if state is PartState.OPENING else None),
        resent=row["resent"],
    )


def _lanes_route(lane: str) -> Route:
    key = SessionKey.parse(lane)
    return Route(key.channel, key.chat_id)
