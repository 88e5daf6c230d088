"""The contract of schedules: turns that start by the clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.keys import Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A prompt that runs again and again. `rule` is a cron line read in `zone` (an IANA name)."""

    id: str
    name: str
    rule: str
    zone: str
    prompt: str
    route: Route
    next_at: datetime
    paused: bool = False


class Schedules(ABC):
    """Keeps schedules. Safe to share between tasks and processes; each verb is one transaction."""

    @abstractmethod
    async def put(self, schedule: Schedule) -> None:
        """Store a schedule, in place of any with the same id."""

    @abstractmethod
    async def due(self, moment: datetime, limit: int) -> Sequence[Schedule]:
        """Return the schedules to run at or before `moment`, the longest waiting first."""

    @abstractmethod
    async def ran(self, id: str, scheduled_for: datetime, next_at: datetime) -> bool:
        """Move a schedule on; return False, and change nothing, if that run was taken by another."""

    @abstractmethod
    async def list(self) -> Sequence[Schedule]:
        """Return all schedules by name."""

    @abstractmethod
    async def delete(self, id: str) -> bool:
        """Forget a schedule; return whether it was there."""
