"""Time, passed in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime


class Clock(ABC):
    """Tells the time and waits. Shared by everything that must agree on what "now" is."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the present moment, in UTC and aware of it."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Return once `seconds` have passed on this clock; at once for zero or less, after giving others their turn."""
