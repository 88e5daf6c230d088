"""The outbox in SQL: each verb is one transaction; those for a lane check its lease first."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from gateway.domain.errors import NotFound
from gateway.domain.outbound import Delivery, DeliveryState, NewDelivery, Part, Ref, StoredPart
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease, lane_lease
from gateway.ports.outbox import Outbox
from gateway.store import leases, outbox_rows
from gateway.store.codec import PART, REF, dump, to_micros
from gateway.store.database import Database, Transaction
from gateway.store.guard import check_lease
from gateway.store.headers import IdMaker

KEYS_KEPT = timedelta(days=7)
"""How long a finished delivery's key is kept, so that the same wish is not carried out twice."""

T = TypeVar("T")

_HEAD = "SELECT * FROM outbox WHERE lane = ? AND state = 'pending' ORDER BY position LIMIT 1"


class SqlOutbox(Outbox):
    """Keeps deliveries and their parts in a `Database`."""

    def __init__(self, database: Database, clock: Clock, make_id: IdMaker) -> None:
        self._database = database
        self._clock = clock
        self._make_id = make_id

    async def enqueue(self, deliveries: Sequence[NewDelivery]) -> int:
        def work(tx: Transaction) -> int:
            now = self._clock.now()
            return sum(outbox_rows.enqueue(tx, delivery, self._make_id(), now) for delivery in deliveries)

        return await self._database.write(work)

    async def due(self, channels: Sequence[str], limit: int) -> Sequence[str]:
        def work(tx: Transaction) -> Sequence[str]:
            now = to_micros(self._clock.now())
            found = tx.all(
                f"""
                SELECT lane FROM outbox AS head
                WHERE state = 'pending' AND channel IN ({", ".join("?" * len(channels))})
                AND coalesce(not_before, 0) <= ?
                AND position = (SELECT min(position) FROM outbox WHERE lane = head.lane AND state = 'pending')
                AND NOT EXISTS (SELECT 1 FROM leases WHERE name = 'lane:' || head.lane AND expires_at > ?)
                ORDER BY position LIMIT ?
                """,
                *channels,
                now,
                now,
                limit,
            )
            return [row["lane"] for row in found]

        return await self._database.read(work)

    async def next(self, lane: str, lease: Lease) -> Delivery | None:
        def work(tx: Transaction) -> Delivery | None:
            check_lease(tx, lease, lane_lease(lane))
            return self._next(tx, lane)

        return await self._database.write(work)

    async def release_if_idle(self, lane: str, lease: Lease) -> bool:
        def work(tx: Transaction) -> bool:
            check_lease(tx, lease, lane_lease(lane))
            if self._next(tx, lane) is not None:
                return False
            leases.release(tx, lease)
            return True

        return await self._database.write(work)

    async def save_parts(self, delivery_id: str, lease: Lease, parts: Sequence[Part]) -> Sequence[StoredPart]:
        def work(tx: Transaction) -> Sequence[StoredPart]:
            if tx.one("SELECT 1 FROM outbox_parts WHERE delivery_id = ?", delivery_id) is None:
                for number, part in enumerate(parts):
                    tx.execute(
                        "INSERT INTO outbox_parts (delivery_id, number, state, body) VALUES (?, ?, 'wanted', ?)",
                        delivery_id,
                        number,
                        dump(PART, part),
                    )
            stored = tx.all("SELECT * FROM outbox_parts WHERE delivery_id = ? ORDER BY number", delivery_id)
            return [outbox_rows.read_part(row) for row in stored]

        return await self._for_delivery(delivery_id, lease, work)

    async def opening(self, part: StoredPart, lease: Lease, *, again: bool = False) -> StoredPart:
        return await self._change(
            part,
            lease,
            "state = 'opening', opening_since = coalesce(opening_since, ?), resent = resent + ?",
            to_micros(self._clock.now()),
            int(again),
        )

    async def opened(self, part: StoredPart, lease: Lease, ref: Ref) -> StoredPart:
        return await self._change(part, lease, "state = 'open', ref = ?", dump(REF, ref))

    async def not_opened(self, part: StoredPart, lease: Lease, *, instead: Part | None = None) -> StoredPart:
        if instead is None:
            return await self._change(part, lease, "state = 'wanted', opening_since = NULL")
        return await self._change(part, lease, "state = 'wanted', opening_since = NULL, body = ?", dump(PART, instead))

    async def done(self, part: StoredPart, lease: Lease, *, hash: str, ref: Ref | None = None) -> bool:
        def work(tx: Transaction) -> bool:
            tx.execute(
                """
                UPDATE outbox_parts SET state = 'done', hash = ?, ref = coalesce(?, ref)
                WHERE delivery_id = ? AND number = ?
                """,
                hash,
                dump(REF, ref) if ref else None,
                part.delivery_id,
                part.index,
            )
            unfinished = "SELECT 1 FROM outbox_parts WHERE delivery_id = ? AND state <> 'done'"
            if tx.one(unfinished, part.delivery_id) is not None:
                return False
            self._end(tx, part.delivery_id, DeliveryState.DONE, None)
            return True

        return await self._for_delivery(part.delivery_id, lease, work)

    async def defer(
        self, delivery_id: str, lease: Lease, until: datetime, why: str, *, is_failure: bool = True
    ) -> None:
        def work(tx: Transaction) -> None:
            tx.execute(
                "UPDATE outbox SET not_before = ?, attempts = attempts + ?, error = ? WHERE id = ?",
                to_micros(until),
                int(is_failure),
                why,
                delivery_id,
            )

        await self._for_delivery(delivery_id, lease, work)

    async def dead(self, delivery_id: str, lease: Lease, why: str) -> None:
        await self._for_delivery(delivery_id, lease, lambda tx: self._end(tx, delivery_id, DeliveryState.DEAD, why))

    async def list(
        self, *, state: DeliveryState | None = None, channel: str | None = None, limit: int = 100
    ) -> builtins.list[Delivery]:
        def work(tx: Transaction) -> builtins.list[Delivery]:
            found = tx.all(
                """
                SELECT * FROM outbox WHERE (? IS NULL OR state = ?) AND (? IS NULL OR channel = ?)
                ORDER BY position DESC LIMIT ?
                """,
                state,
                state,
                channel,
                channel,
                limit,
            )
            return [outbox_rows.read(tx, row) for row in found]

        return await self._database.read(work)

    async def retry(self, delivery_id: str) -> bool:
        def work(tx: Transaction) -> bool:
            # Its place in the lane is its position, so going to the end means a new one.
            moved = tx.execute(
                """
                UPDATE outbox SET state = 'pending', attempts = 0, not_before = NULL, error = NULL, done_at = NULL,
                position = (SELECT max(position) + 1 FROM outbox) WHERE id = ? AND state = 'dead' AND body IS NOT NULL
                """,
                delivery_id,
            )
            return moved == 1

        return await self._database.write(work)

    async def drop(self, delivery_id: str) -> bool:
        def work(tx: Transaction) -> bool:
            dropped = tx.execute(
                "UPDATE outbox SET state = 'done', body = NULL WHERE id = ? AND state = 'dead'", delivery_id
            )
            tx.execute("UPDATE outbox_parts SET body = NULL WHERE delivery_id = ?", delivery_id) if dropped else None
            return dropped == 1

        return await self._database.write(work)

    async def possible_duplicates(self) -> int:
        def work(tx: Transaction) -> int:
            row = tx.one("SELECT coalesce(sum(resent), 0) AS total FROM outbox_parts WHERE resent > 0")
            assert row is not None
            return int(row["total"])

        return await self._database.read(work)

    async def forget(self) -> int:
        def work(tx: Transaction) -> int:
            before = to_micros(self._clock.now() - KEYS_KEPT)
            old = "SELECT id FROM outbox WHERE state = 'done' AND done_at < ?"
            tx.execute(f"DELETE FROM outbox_parts WHERE delivery_id IN ({old})", before)
            return tx.execute("DELETE FROM outbox WHERE state = 'done' AND done_at < ?", before)

        return await self._database.write(work)

    def _next(self, tx: Transaction, lane: str) -> Delivery | None:
        while (head := tx.one(_HEAD, lane)) is not None:
            if (head["not_before"] or 0) > to_micros(self._clock.now()):
                return None
            if (delivery := outbox_rows.read_sendable(tx, head)) is not None:
                return delivery
            # One that cannot be read must not hold up those behind it; it stays, to be looked at.
            self._end(tx, head["id"], DeliveryState.DEAD, "damaged: it cannot be read")
        return None

    async def _for_delivery(self, delivery_id: str, lease: Lease, work: Callable[[Transaction], T]) -> T:
        def guarded(tx: Transaction) -> T:
            row = tx.one("SELECT lane FROM outbox WHERE id = ?", delivery_id)
            if row is None:
                raise NotFound(f"no delivery has the id {delivery_id!r}")
            check_lease(tx, lease, lane_lease(row["lane"]))
            return work(tx)

        return await self._database.write(guarded)

    async def _change(self, part: StoredPart, lease: Lease, assignments: str, *values: object) -> StoredPart:
        def work(tx: Transaction) -> StoredPart:
            row = tx.one(
                f"UPDATE outbox_parts SET {assignments} WHERE delivery_id = ? AND number = ? RETURNING *",
                *values,
                part.delivery_id,
                part.index,
            )
            if row is None:
                raise NotFound(f"delivery {part.delivery_id!r} has no part {part.index}")
            return outbox_rows.read_part(row)

        return await self._for_delivery(part.delivery_id, lease, work)

    def _end(self, tx: Transaction, delivery_id: str, state: DeliveryState, why: str | None) -> None:
        keep = state == DeliveryState.DEAD
        tx.execute(
            "UPDATE outbox SET state = ?, error = ?, done_at = ?, not_before = NULL, "
            "body = CASE WHEN ? THEN body ELSE NULL END WHERE id = ?",
            state,
            why,
            to_micros(self._clock.now()),
            keep,
            delivery_id,
        )
        if not keep:
            tx.execute("UPDATE outbox_parts SET body = NULL WHERE delivery_id = ?", delivery_id)
