"""The sweep: wake-ups are hints, and what no hint reached is found here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from loguru import logger

from gateway.ports.clock import Clock
from gateway.ports.media import Media
from gateway.ports.outbox import Outbox
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Topic, Wakeups
from gateway.turns.breaks import Breaks, Broken, Why

MOST_AT_ONCE = 500
SWEEPS_PER_CLEANING = 720
ABANDONED_AFTER = timedelta(days=1)
"""How old a file without a session must be to be removed; no download takes that long."""


class Sweep:
    """Wakes sessions and lanes that have work and nobody working them; now and then drops what is finished and old."""

    def __init__(
        self,
        *,
        turns: Turns,
        outbox: Outbox,
        media: Media,
        wakeups: Wakeups,
        channels: Callable[[], Sequence[str]],
        clock: Clock,
        seconds: float,
    ) -> None:
        self._turns = turns
        self._outbox = outbox
        self._media = media
        self._wakeups = wakeups
        self._channels = channels
        self._clock = clock
        self._seconds = seconds
        self._breaks = Breaks()

    async def run(self) -> None:
        """Sweep at once, so that what a dead process left is gone on with, and then again and again until cancelled."""
        count = 0
        while True:
            try:
                await self.once()
                if count % SWEEPS_PER_CLEANING == 0:
                    await self._turns.forget()
                    await self._outbox.forget()
                    await self._media.sweep(ABANDONED_AFTER, self._clock.now())
            except Exception:  # the supervised boundary of the sweep: one that failed is not the last
                logger.exception("a sweep failed")
            count += 1
            await self._rest()

    def soon(self) -> None:
        """Sweep without waiting for the next time, since there are channels now that there were not."""
        self._breaks.ask(Why.INPUT)

    async def _rest(self) -> None:
        try:
            async with self._breaks.step():
                await self._clock.sleep(self._seconds)
        except Broken:
            self._breaks.looked()

    async def once(self) -> None:
        """Wake everything that is due now."""
        channels = self._channels()
        if not channels:
            return
        for session_id in await self._turns.due(channels, MOST_AT_ONCE):
            await self._wakeups.wake(Topic.SESSION, session_id)
        for lane in await self._outbox.due(channels, MOST_AT_ONCE):
            await self._wakeups.wake(Topic.LANE, lane)
