"""Letting a burst of messages settle before it is answered."""

from __future__ import annotations

from datetime import timedelta

from gateway.domain.busy import Busy, BusyModes, settles_at
from gateway.domain.errors import NotFound
from gateway.ports.clock import Clock
from gateway.ports.sessions import Sessions
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Topic, Wakeups


class Settling:
    """Says whether a session may be worked now; holds nothing, since what waits is in the inbox."""

    def __init__(
        self, *, turns: Turns, sessions: Sessions, wakeups: Wakeups, clock: Clock, modes: BusyModes, settle: timedelta
    ) -> None:
        self._turns = turns
        self._sessions = sessions
        self._wakeups = wakeups
        self._clock = clock
        self._modes = modes
        self._settle = settle

    async def is_over(self, session_id: str) -> bool:
        """Return whether the session's burst is over; if it is not, the session is woken again when it should be."""
        if not self._modes.has_bursts or not await self._has_bursts(session_id):
            return True
        at = settles_at(await self._turns.backlog(session_id), self._settle)
        if at is None or at <= self._clock.now():
            return True
        await self._wakeups.wake(Topic.SESSION, session_id, at=at)
        return False

    async def _has_bursts(self, session_id: str) -> bool:
        try:
            session = await self._sessions.get(session_id)
        except NotFound:
            return False
        return self._modes.of(session.key) is Busy.BURST
