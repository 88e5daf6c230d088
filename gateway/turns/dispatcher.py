"""Who works which session: one holder of its lease at a time, a bounded number of sessions at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial

from loguru import logger

from gateway.domain.errors import LeaseLost, Unavailable
from gateway.domain.turn import RESUME, Turn, TurnState, Waiting
from gateway.ports.clock import Clock
from gateway.ports.leases import Holding, Lease, Leases, held, session_lease
from gateway.ports.patience import until_stored
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Signal, Topic, Wakeups
from gateway.turns.breaks import Breaks, Why
from gateway.turns.presence import Attention
from gateway.turns.runner import Runner
from gateway.turns.settling import Settling

STORE_SECONDS = 5.0
"""How long a turn rests that met a store that is away."""


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
        self._suspect: str | None = None
        self._later: dict[str, None] = {}
        """Sessions whose turns wait for the suspect that runs, in their order."""
        self._is_draining = False

    def drain(self) -> None:
        """Begin no more turns; those that run go on."""
        self._is_draining = True

    async def drive(self, session_id: str) -> None:
        """Run the session's turns until nothing is pending; return at once if another works it."""
        if await self._settling.is_over(session_id):
            async with self._place(session_id):
                await self._drive(session_id)

    @asynccontextmanager
    async def _place(self, session_id: str) -> AsyncIterator[None]:
        """Take one of the places, or none where a stop is asked for meanwhile: to end a turn takes no place."""
        if not self._slots.locked():
            async with self._slots:
                yield
            return
        asked = asyncio.Event()
        self._wakeups.on_signal(session_id, lambda signal: asked.set() if signal is Signal.STOP else None)
        taking = asyncio.create_task(self._slots.acquire(), name="place")
        hearing = asyncio.create_task(asked.wait(), name="stop")
        try:
            await asyncio.wait({taking, hearing}, return_when=asyncio.FIRST_COMPLETED)
            self._wakeups.on_signal(session_id, None)
            yield
        finally:
            self._wakeups.on_signal(session_id, None)
            hearing.cancel()
            if not taking.cancel():
                self._slots.release()
            await asyncio.gather(taking, hearing, return_exceptions=True)

    async def _drive(self, session_id: str) -> None:
        if self._is_draining:
            return
        still_waits = False
        try:
            lease = await self._leases.acquire(session_lease(session_id), self._owner, self._ttl)
            if lease is not None:
                async with held(self._leases, lease, self._ttl, self._clock) as holding:
                    still_waits = await self._work(session_id, holding)
        except LeaseLost:
            logger.bind(session_id=session_id).warning("the session is worked elsewhere now; nothing more is written")
        finally:
            # What has to wait was heard, and is seen to be.
            if not still_waits:
                self._attention.idle(session_id)

    async def _work(self, session_id: str, holding: Holding) -> bool:
        """Run turns; return whether one has to wait that is woken again by itself."""
        while not self._is_draining:
            # Before the turn begins: what is asked for from then on must not be missed.
            breaks = Breaks()
            self._wakeups.on_signal(session_id, partial(_break_off, breaks))
            try:
                is_later = await self._next(session_id, holding.lease, breaks)
            finally:
                self._wakeups.on_signal(session_id, None)
            if is_later:
                return True
            holding.is_given_back = await self._turns.release_if_idle(session_id, holding.lease)
            if holding.is_given_back:
                return False
            if not await self._settling.is_over(session_id):
                return True
        return False

    async def _next(self, session_id: str, lease: Lease, breaks: Breaks) -> bool:
        """Run the session's next turn, if there is one to run; return whether it is run later.

        Turns that were there when a process died are run one at a time: one of them may have ended it, and those that
        only happened to run must not be set aside with it. A turn that waits for others is not even begun, so that a
        death in that time does not count against it, and holds neither a lease nor a place.
        """
        is_first = self._suspect is None
        if is_first:
            self._suspect = session_id
        try:
            turn = await self._begin(session_id, lease, suspects=is_first)
            if turn is not None and turn.state is TurnState.WAITING:
                self._attention.working(turn.session_id, turn.route)
                self._later[session_id] = None
                return True
            self._later.pop(session_id, None)
            if is_first and (turn is None or turn.attempt == 1):
                await self._leave()
            return turn is not None and await self._run(turn, lease, breaks)
        finally:
            if self._suspect == session_id:
                await self._leave()

    async def _leave(self) -> None:
        """Let the next suspect run."""
        self._suspect = None
        if (following := next(iter(self._later), None)) is not None:
            del self._later[following]
            await self._wakeups.wake(Topic.SESSION, following)

    async def _begin(self, session_id: str, lease: Lease, *, suspects: bool) -> Turn | None:
        """Begin a turn; if this is cancelled while it is being stored, set it down again."""
        beginning = asyncio.ensure_future(self._turns.begin(session_id, lease, suspects=suspects))
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            # Whatever became of it, who is cancelled does not wait for a store that is away.
            with suppress(LeaseLost, Unavailable):
                turn = await beginning
                if turn is not None and turn.state is TurnState.RUNNING:
                    await self._set_down(turn, lease)
            raise

    async def _run(self, turn: Turn, lease: Lease, breaks: Breaks) -> bool:
        """Run the turn; return whether it has to be gone on with later, since the store was away."""
        self._attention.working(turn.session_id, turn.route)
        try:
            await self._runner.run(turn, lease, breaks)
        except asyncio.CancelledError:
            await self._set_down(turn, lease)
            raise
        except Unavailable as error:
            logger.bind(session_id=turn.session_id, error=str(error)).warning("a turn waits for the store")
            await until_stored(lambda: self._turns.suspend(turn, lease, Waiting(reason=RESUME)), self._clock)
            at = self._clock.now() + timedelta(seconds=STORE_SECONDS)
            await self._wakeups.wake(Topic.SESSION, turn.session_id, at=at)
            return True
        return False

    async def _set_down(self, turn: Turn, lease: Lease) -> None:
        """Leave the turn to whoever starts next: a stop in good order does not count as a crash."""
        with suppress(LeaseLost, Unavailable):
            await self._turns.suspend(turn, lease, Waiting(reason=RESUME))


def _break_off(breaks: Breaks, signal: Signal) -> None:
    breaks.ask(Why.STOP if signal is Signal.STOP else Why.INPUT)
