"""What a channel knows of its own health: completed round trips and counts, never wishes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from gateway.ports.channel import Health
from gateway.ports.clock import Clock


class Vitals:
    """Notes what happened on the wire, and when."""

    def __init__(self, clock: Clock, stale_seconds: float) -> None:
        self._clock = clock
        self._stale = timedelta(seconds=stale_seconds)
        self._is_receiving = False
        self._detail = "has not received yet"
        self._last_alive: datetime | None = None
        self._last_inbound: datetime | None = None
        self._last_outbound: datetime | None = None
        self._counts: Counter[str] = Counter()

    def alive(self) -> None:
        """A request for updates was answered."""
        self._is_receiving, self._detail, self._last_alive = True, "", self._clock.now()

    def deaf(self, why: str) -> None:
        """Updates do not come; `why` holds no secret."""
        self._is_receiving, self._detail = False, why

    def received(self) -> None:
        """An event was handed in."""
        self._last_inbound = self._clock.now()
        self.count("received")

    def sent(self) -> None:
        """A message was shown, changed or taken away."""
        self._last_outbound = self._clock.now()
        self.count("sent")

    def count(self, what: str) -> None:
        """Count something."""
        self._counts[what] += 1

    def health(self) -> Health:
        """Return the state; silence for longer than any request may take is not health."""
        is_fresh = self._last_alive is not None and self._clock.now() - self._last_alive <= self._stale
        is_receiving = self._is_receiving and is_fresh
        return Health(
            receiving=is_receiving,
            detail=self._detail or ("" if is_receiving else "no answer to a request for updates for too long"),
            last_inbound=self._last_inbound,
            last_outbound=self._last_outbound,
            last_alive=self._last_alive,
            counters=dict(self._counts),
        )
