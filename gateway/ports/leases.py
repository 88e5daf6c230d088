"""The contract of leases: the only mutual exclusion there is."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.domain.errors import LeaseLost, Unavailable
from gateway.ports.clock import Clock
from gateway.ports.patience import until_stored


@dataclass(frozen=True, slots=True)
class Lease:
    """A held name. `token` grows with each change of hands, so a write that names an older one is refused."""

    name: str
    holder: str
    token: int
    expires_at: datetime


def session_lease(session_id: str) -> str:
    """Return the name of the lease under which a session's turns are written."""
    return f"session:{session_id}"


def lane_lease(lane: str) -> str:
    """Return the name of the lease under which a lane's deliveries are written."""
    return f"lane:{lane}"


class Leases(ABC):
    """Grants names for a time, by the store's clock. Safe to share between tasks and processes.

    A lease past its expiry may be taken by another; until that happens its holder's writes still count, since nobody
    else can have acted in between.
    """

    @abstractmethod
    async def acquire(self, name: str, owner: str, ttl: timedelta) -> Lease | None:
        """Take the name if it is free or expired; return None while anybody (also `owner` itself) holds it."""

    @abstractmethod
    async def renew(self, lease: Lease, ttl: timedelta) -> Lease:
        """Move the expiry to `ttl` from now; raise `LeaseLost` if the lease has changed hands or was released."""

    @abstractmethod
    async def release(self, lease: Lease) -> None:
        """Give the name back; nothing happens if it has changed hands already."""

    @abstractmethod
    async def holders(self, prefix: str = "") -> Sequence[Lease]:
        """Return the unexpired leases whose names begin with `prefix`, by name."""


@asynccontextmanager
async def renewed(leases: Leases, lease: Lease, ttl: timedelta, clock: Clock) -> AsyncIterator[None]:
    """Renew `lease` every third of `ttl` while the body runs; cancel the body and raise `LeaseLost` once it is lost."""
    body = asyncio.current_task()
    assert body is not None
    lost = False

    async def renew() -> None:
        nonlocal lost
        while True:
            await clock.sleep(ttl.total_seconds() / 3)
            try:
                await leases.renew(lease, ttl)
            except LeaseLost:
                lost = True
                body.cancel()
                return
            except Unavailable:
                # Nobody else can have taken the lease where nothing can be written; the next third may do better.
                continue

    renewal = asyncio.create_task(renew(), name=f"renew {lease.name}")
    try:
        yield
    except asyncio.CancelledError:
        if lost and body.uncancel() == 0:
            raise LeaseLost(lease.name) from None
        raise
    finally:
        renewal.cancel()
        await asyncio.gather(renewal, return_exceptions=True)


@dataclass(slots=True)
class Holding:
    """A lease that is held; whoever gives it back together with something else says so here."""

    lease: Lease
    is_given_back: bool = False


@asynccontextmanager
async def held(leases: Leases, lease: Lease, ttl: timedelta, clock: Clock) -> AsyncIterator[Holding]:
    """Keep `lease` renewed while the body runs, and give it back at its end; raise `LeaseLost` once it is lost.

    Giving back waits for a store that cannot be used now, or the next to ask would wait until it expires; a cancelled
    body does not wait.
    """
    holding = Holding(lease)
    try:
        async with renewed(leases, lease, ttl, clock):
            yield holding
    except asyncio.CancelledError:
        with suppress(Unavailable):
            await leases.release(lease)
        raise
    except BaseException:
        await until_stored(lambda: leases.release(lease), clock)
        raise
    else:
        if not holding.is_given_back:
            await until_stored(lambda: leases.release(lease), clock)
