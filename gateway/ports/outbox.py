"""The contract of the outbox: deliveries in lanes, their parts, and what became of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime

from gateway.domain.outbound import Delivery, DeliveryState, NewDelivery, Part, Ref, StoredPart
from gateway.ports.leases import Lease


class Outbox(ABC):
    """Keeps deliveries. Safe to share between tasks and processes; each verb is one durable transaction.

    Verbs that take a lease raise `LeaseLost`, and change nothing, if the lane's lease is stale.
    """

    @abstractmethod
    async def enqueue(self, deliveries: Sequence[NewDelivery]) -> int:
        """Store deliveries at the end of their lanes; those whose `dedupe_key` is known are left out.

        Return how many are new.
        """

    @abstractmethod
    async def due(self, channels: Sequence[str], limit: int) -> Sequence[str]:
        """Return lanes of these channels whose first delivery may go now and that nobody works, oldest first."""

    @abstractmethod
    async def next(self, lane: str, lease: Lease) -> Delivery | None:
        """Return the lane's first unfinished delivery with its parts, or None if there is none or it must wait."""

    @abstractmethod
    async def release_if_idle(self, lane: str, lease: Lease) -> bool:
        """Give the lease back if `next` would find nothing; return whether it was given back."""

    @abstractmethod
    async def save_parts(self, delivery_id: str, lease: Lease, parts: Sequence[Part]) -> Sequence[StoredPart]:
        """Store what the delivery is shown as, before the first is sent; a delivery that has parts keeps them."""

    @abstractmethod
    async def opening(self, part: StoredPart, lease: Lease, *, again: bool = False) -> StoredPart:
        """Write down that the part is about to be created. `again` counts it as a possible duplicate."""

    @abstractmethod
    async def opened(self, part: StoredPart, lease: Lease, ref: Ref) -> StoredPart:
        """Write down where the part is; it may still change."""

    @abstractmethod
    async def done(self, part: StoredPart, lease: Lease, *, hash: str, ref: Ref | None = None) -> bool:
        """Write down that the part is shown in full.

        The last one ends the delivery: returns True, and bodies are dropped.
        """

    @abstractmethod
    async def not_opened(self, part: StoredPart, lease: Lease, *, instead: Part | None = None) -> StoredPart:
        """Write down that the creating call was certainly not applied; `instead` replaces the part (its plain form)."""

    @abstractmethod
    async def defer(
        self, delivery_id: str, lease: Lease, until: datetime, why: str, *, is_failure: bool = True
    ) -> None:
        """Keep the delivery, and so its lane, until then; a failure counts as one attempt, mere waiting does not."""

    @abstractmethod
    async def dead(self, delivery_id: str, lease: Lease, why: str) -> None:
        """Give the delivery up; it stays visible, with its body, and its lane goes on."""

    @abstractmethod
    async def list(
        self, *, state: DeliveryState | None = None, channel: str | None = None, limit: int = 100
    ) -> Sequence[Delivery]:
        """Return deliveries, newest first; None does not filter."""

    @abstractmethod
    async def retry(self, delivery_id: str) -> bool:
        """Bring a dead delivery back to the end of its lane; return whether it was dead."""

    @abstractmethod
    async def drop(self, delivery_id: str) -> bool:
        """Forget the body of a dead delivery for good; return whether it was dead."""

    @abstractmethod
    async def possible_duplicates(self) -> int:
        """Return how often a part was sent though it may have been there already."""

    @abstractmethod
    async def forget(self) -> int:
        """Drop the keys of finished deliveries that are older than 7 days; return how many."""
