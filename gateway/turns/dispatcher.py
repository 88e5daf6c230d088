"""Who works which session: one holder of its lease at a time, a bounded number of sessions at once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from loguru import logger

from gateway.domain.errors import LeaseLost, Unavailable
from gateway.domain.turn import RESUME, Turn, Waiting
from gateway.ports.clock import Clock
from gateway.ports.leases import Holding, Lease, Leases, held, session_lease
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Wakeups
from gateway.turns.breaks import Breaks, Why
from gateway.turns.presence import Attention
from gateway.turns.runner import Runner, is_ended_at_once
from gateway.turns.settling import Settling


class Dispatcher:
    """Drains the inboxes of sessions that were woken."""

    def __init__(
        self,
        *,
        turns: Turns,
        leases: Leases,
        runner: Runner,
        settling: Settling,
        attention: Attention,
        wakeups: Wakeups,
        clock: Clock,
        owner: str,
        lease_ttl: timedelta,
        max_concurrent: int,
    ) -> None:
        self._turns = turns
        self._leases = leases
        self._runner = runner
        self._settling = settling
        self._attention = attention
        self._wakeups = wakeups
        self._clock = clock
        self._owner = owner
        self._ttl = lease_ttl
        self._slots = asyncio.Semaphore(max_concurrent)
        self._suspects = asyncio.Lock()
        self._is_draining = False

    def drain(self) -> None:
        """Begin no more turns; those that run go on."""
        self._is_draining = True

    async def drive(self, session_id: str) -> None:
        """Run the session's turns until nothing is pending; return at once if another works it."""
        if await self._settling.is_over(session_id):
            async with self._slots:
                await self._drive(session_id)

    async def _drive(self, session_id: str) -> None:
        if self._is_draining:
            return
        try:
            lease = await self._leases.acquire(session_lease(session_id), self._owner, self._ttl)
            if lease is not None:
                async with held(self._leases, lease, self._ttl, self._clock) as holding:
                    await self._work(session_id, holding)
        except LeaseLost:
            logger.bind(session_id=session_id).warning("the session is worked elsewhere now; nothing more is written")
        finally:
            self._attention.idle(session_id)

    async def _work(self, session_id: str, holding: Holding) -> None:
        while not self._is_draining:
            # Before the turn begins: what is asked for from then on must not be missed.
            breaks = Breaks()
            self._wakeups.on_signal(session_id, lambda _, breaks=breaks: breaks.ask(Why.LOOK))  # type: ignore[misc]
            try:
                await self._next(session_id, holding.lease, breaks)
            finally:
                self._wakeups.on_signal(session_id, None)
            holding.is_given_back = await self._turns.release_if_idle(session_id, holding.lease)
            if holding.is_given_back or not await self._settling.is_over(session_id):
                return

    async def _next(self, session_id: str, lease: Lease, breaks: Breaks) -> None:
        """Run the session's next turn, if there is one to run."""
        turn = await self._begin(session_id, lease)
        if turn is None:
            return
        if turn.attempt > 1 and not is_ended_at_once(turn):
            await self._run_suspect(turn, lease, breaks)
        else:
            await self._run(turn, lease, breaks)

    async def _begin(self, session_id: str, lease: Lease) -> Turn | None:
        """Begin a turn; if this is cancelled while it is being stored, set it down again."""
        beginning = asyncio.ensure_future(self._turns.begin(session_id, lease))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            if (turn := await beginning) is not None:
                await self._set_down(turn, lease)
            raise

    async def _run_suspect(self, turn: Turn, lease: Lease, breaks: Breaks) -> None:
        """Run a turn that was there when a process died, one such turn at a time.

        One of them may have ended the process, and those that only happened to run must not be set aside with it. While
        it waits for the others it is set down, so that a death in that time does not count against it.
        """
        if not self._suspects.locked():
            async with self._suspects:
                await self._run(turn, lease, breaks)
            return
        await self._set_down(turn, lease)
        async with self._suspects:
            resumed = await self._begin(turn.session_id, lease)
            if resumed is not None:
                await self._run(resumed, lease, breaks)

    async def _run(self, turn: Turn, lease: Lease, breaks: Breaks) -> None:
        self._attention.working(turn.session_id, turn.route)
        try:
            await self._runner.run(turn, lease, breaks)
        except asyncio.CancelledError:
            await self._set_down(turn, lease)
            raise

    async def _set_down(self, turn: Turn, lease: Lease) -> None:
        """Leave the turn to whoever starts next: a stop in good order does not count as a crash."""
        with suppress(LeaseLost, Unavailable):
            await self._turns.suspend(turn, lease, Waiting(reason=RESUME))
