"""The system's clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from gateway.ports.clock import Clock


class SystemClock(Clock):
    """The time of this machine, and the event loop's way of waiting."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))
