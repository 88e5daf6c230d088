"""Deliveries and parts to and from their columns, and the statements that turns need too."""

from __future__ import annotations

from datetime import datetime

from gateway.domain.outbound import Delivery, DeliveryState, NewDelivery, PartState, StoredPart
from gateway.store.codec import (
    OUTBOUND,
    PART,
    REF,
    ROUTE,
    dump,
    from_micros,
    maybe_from_micros,
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
    """Return the delivery a row holds, with its parts."""
    parts = tx.all("SELECT * FROM outbox_parts WHERE delivery_id = ? ORDER BY number", row["id"])
    return Delivery(
        id=row["id"],
        route=ROUTE.validate_json(row["route"]),
        state=DeliveryState(row["state"]),
        created_at=from_micros(row["created_at"]),
        outbound=OUTBOUND.validate_json(row["body"]) if row["body"] else None,
        parts=tuple(read_part(part) for part in parts),
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        attempts=row["attempts"],
        not_before=maybe_from_micros(row["not_before"]),
        error=row["error"],
    )


def read_part(row: Row) -> StoredPart:
    """Return the part a row holds."""
    return StoredPart(
        delivery_id=row["delivery_id"],
        index=row["number"],
        state=PartState(row["state"]),
        part=PART.validate_json(row["body"]) if row["body"] else None,
        ref=REF.validate_json(row["ref"]) if row["ref"] else None,
        hash=row["hash"],
        opening_since=maybe_from_micros(row["opening_since"]),
        resent=row["resent"],
    )
