"""A clock that tests move by hand."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from datetime import UTC, datetime, timedelta

from gateway.ports.clock import Clock


class ManualClock(Clock):
    """Stands still until `advance` is called; sleepers wake in the order of their moments."""

    def __init__(self, start: datetime = datetime(2026, 11, 30, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._order = itertools.count()
        self._sleepers: list[tuple[datetime, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waiter = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + timedelta(seconds=seconds), next(self._order), waiter))
        await waiter

    @property
    def sleepers(self) -> int:
        """How many tasks wait for this clock."""
        return sum(not waiter.done() for _, _, waiter in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move the time on, waking each sleeper at its own moment."""
        end = self._now + timedelta(seconds=seconds)
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            moment, _, waiter = heapq.heappop(self._sleepers)
            self._now = max(self._now, moment)
            if not waiter.done():
                waiter.set_result(None)
                await settle()
        self._now = end
        await settle()


async def settle(rounds: int = 20) -> None:
    """Let every task that can go on do so."""
    for _ in range(rounds):
        await asyncio.sleep(0)
