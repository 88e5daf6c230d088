"""What a channel has seen of itself: moments of completed round trips and counts, never wishes.

Every adapter keeps one, and answers `Channel.health` from it. Time comes in as an argument.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from gateway.ports.channel import Health


class Vitals:
    """Notes what happened on the wire, and when."""

    def __init__(self, *, stale_after: timedelta | None = None) -> None:
        self._stale_after = stale_after
        self._is_receiving = False
        self._detail = "has not received yet"
        self._last_alive: datetime | None = None
        self._last_inbound: datetime | None = None
        self._last_outbound: datetime | None = None
        self._counts: Counter[str] = Counter()

    def hears(self, now: datetime) -> None:
        """Note that events can come in, told by a round trip that was just completed."""
        self._is_receiving, self._detail = True, ""
        self.alive(now)

    def is_deaf(self, why: str) -> None:
        """Note that no events come in; `why` is for an operator and holds no secret."""
        self._is_receiving, self._detail = False, why

    def alive(self, now: datetime) -> None:
        """Note that the receiving half heard the other side."""
        self._last_alive = now

    def came_in(self, now: datetime) -> None:
        """Note that an event was taken in."""
        self._last_inbound = now
        self.count("received")

    def went_out(self, now: datetime) -> None:
        """Note that the platform confirmed a call that shows something."""
        self._last_outbound = now
        self.count("sent")

    def count(self, what: str) -> None:
        """Count one more of these."""
        self._counts[what] += 1

    def health(self, now: datetime) -> Health:
        """Return all of it; silence for longer than `stale_after` is not health."""
        is_receiving = self._is_receiving and not self._is_stale(now)
        return Health(
            receiving=is_receiving,
            detail="nothing was heard for too long" if self._is_receiving and not is_receiving else self._detail,
            last_inbound=self._last_inbound,
            last_outbound=self._last_outbound,
            last_alive=self._last_alive,
            counters=dict(self._counts),
        )

    def _is_stale(self, now: datetime) -> bool:
        if self._stale_after is None or self._last_alive is None:
            return False
        return now - self._last_alive > self._stale_after
