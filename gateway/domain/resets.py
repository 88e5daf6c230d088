"""When a chat begins anew by itself: after a time of silence, or at a time of day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetRule:
    """Neither is the default: a chat goes on for ever. `daily_at` is a time of day in `zone`."""

    idle: timedelta | None = None
    daily_at: time | None = None
    zone: tzinfo = UTC

    @property
    def is_never(self) -> bool:
        """Whether a chat goes on for ever."""
        return self.idle is None and self.daily_at is None

    def is_over(self, last_activity: datetime, now: datetime) -> bool:
        """Return whether a message at `now` begins a new session, the last activity having been then."""
        if self.idle is not None and now - last_activity > self.idle:
            return True
        return self.daily_at is not None and last_activity < self._last_boundary(now)

    def _last_boundary(self, now: datetime) -> datetime:
        assert self.daily_at is not None
        local = now.astimezone(self.zone)
        # Times of one zone compare by the hands of the clock, which go back in autumn: only UTC tells what was first.
        today = datetime.combine(local.date(), self.daily_at, self.zone).astimezone(UTC)
        if today <= now.astimezone(UTC):
            return today
        return datetime.combine(local.date() - timedelta(days=1), self.daily_at, self.zone).astimezone(UTC)
