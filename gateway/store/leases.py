"""Leases as rows. A row stays when its lease is given back, so that its token never starts again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gateway.domain.errors import LeaseLost
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease, Leases
from gateway.store.codec import from_micros, to_micros
from gateway.store.database import Database, Row, Transaction

RELEASED = 0
"""The expiry of a lease that was given back."""


class SqlLeases(Leases):
    """Grants leases by the store's clock."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        def work(tx: Transaction) -> Lease | None:
            now = self._clock.now()
            row = tx.one(
                """
                INSERT INTO leases (name, holder, token, expires_at) VALUES (?, ?, 1, ?)
                ON CONFLICT (name) DO UPDATE
                SET holder = excluded.holder, token = leases.token + 1, expires_at = excluded.expires_at
                WHERE leases.expires_at <= ?
                RETURNING name, holder, token, expires_at
                """,
                name,
                owner,
                to_micros(now + ttl),
                to_micros(now),
            )
            return _lease(row) if row else None

        return await self._database.write(work)

    async def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        def work(tx: Transaction) -> Lease | None:
            row = tx.one(
                """
                UPDATE leases SET expires_at = ? WHERE name = ? AND token = ? AND expires_at > 0
                RETURNING name, holder, token, expires_at
                """,
                to_micros(self._clock.now() + ttl),
                lease.name,
                lease.token,
            )
            return _lease(row) if row else None

        renewed = await self._database.write(work)
        if renewed is None:
            raise LeaseLost(lease.name)
        return renewed

    async def release(self, lease: Lease) -> None:
        await self._database.write(lambda tx: release(tx, lease))

    async def holders(self, prefix: str = "") -> Sequence[Lease]:
        def work(tx: Transaction) -> list[Lease]:
            rows = tx.all(
                "SELECT * FROM leases WHERE expires_at > ? AND substr(name, 1, ?) = ? ORDER BY name",
                to_micros(self._clock.now()),
                len(prefix),
                prefix,
            )
            return [_lease(row) for row in rows]

        return await self._database.read(work)


def release(tx: Transaction, lease: Lease) -> None:
    """Give a lease back inside a larger transaction; nothing happens if it has changed hands."""
    tx.execute("UPDATE leases SET expires_at = ? WHERE name = ? AND token = ?", RELEASED, lease.name, lease.token)


def _lease(row: Row) -> Lease:
    return Lease(row["name"], row["holder"], row["token"], from_micros(row["expires_at"]))
