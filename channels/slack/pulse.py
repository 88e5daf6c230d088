"""What a channel has seen of itself: moments of completed round trips, and counts."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from gateway.ports.channel import Health
from gateway.ports.clock import Clock


class Pulse:
    """Remembers when Slack last answered, and how often what happened."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.receiving = False
        self.detail = "not receiving"
        self.counts: Counter[str] = Counter()
        self._alive: datetime | None = None
        self._inbound: datetime | None = None
        self._outbound: datetime | None = None

    def alive(self) -> None:
        """Note that the other side was heard."""
        self._alive = self.clock.now()

    def came_in(self) -> None:
        """Note that an event was taken in."""
        self._inbound = self.clock.now()
        self.counts["received"] += 1

    def went_out(self) -> None:
        """Note that Slack confirmed a call that shows something."""
        self._outbound = self.clock.now()

    def count(self, what: str) -> None:
        """Count one more of these."""
        self.counts[what] += 1

    def connected(self, yes: bool, detail: str) -> None:
        """Note how the receiving half is."""
        self.receiving, self.detail = yes, detail

    def health(self) -> Health:
        """Return all of it."""
        return Health(
            receiving=self.receiving,
            detail=self.detail,
            last_inbound=self._inbound,
            last_outbound=self._outbound,
            last_alive=self._alive,
            counters=dict(self.counts),
        )
