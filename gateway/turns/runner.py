"""Running one turn to its end, whichever that is: an answer, silence, or one honest note."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from loguru import logger

from gateway.domain.errors import LeaseLost, ModelUnavailable, StopRequested, TrunklineError, Unavailable
from gateway.domain.turn import Turn
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease
from gateway.ports.wakeups import Topic, Wakeups
from gateway.turns.breaks import Breaks, Broken, Why
from gateway.turns.choosing import Suspended
from gateway.turns.endings import Endings
from gateway.turns.listening import Listener
from gateway.turns.rounds import Rounds
from gateway.turns.run import Run
from gateway.turns.telling import Step, Teller

MAX_ATTEMPTS = 2
"""A turn that killed the process this often is set aside."""


class Runner:
    """Runs turns; holds nothing between them."""

    def __init__(
        self,
        *,
        rounds: Rounds,
        listener: Listener,
        endings: Endings,
        wakeups: Wakeups,
        clock: Clock,
        teller: Teller,
        time_limit: timedelta,
    ) -> None:
        self._rounds = rounds
        self._listener = listener
        self._endings = endings
        self._wakeups = wakeups
        self._clock = clock
        self._teller = teller
        self._time_limit = time_limit

    async def run(self, turn: Turn, lease: Lease, breaks: Breaks) -> None:
        """Run the turn to its end.

        Raises `LeaseLost`, having written nothing more, and `Unavailable` where the store is away and the turn is to be
        gone on with.
        """
        about = {"session": str(turn.key), "channel": turn.route.channel, "message": turn.route.reply_to}
        with logger.contextualize(**about, turn=turn.id):
            run = Run(turn=turn, lease=lease, breaks=breaks)
            if turn.attempt > MAX_ATTEMPTS:
                await self._endings.set_aside(run)
                return
            async with self._limited(breaks):
                await self._to_its_end(run)

    async def _to_its_end(self, run: Run) -> None:
        self._teller.of_turn(Step.STARTED, run.turn, attempt=run.turn.attempt)
        try:
            await self._answer(run)
        except LeaseLost:
            raise
        except ModelUnavailable as error:
            await self._endings.failed(run, error)
        except Unavailable:
            raise
        except StopRequested as stop:
            await self._endings.stopped(run, stop.by)
        except Suspended as suspended:
            self._teller.of_turn(Step.WAITING, run.turn, until=suspended.until.isoformat())
            await self._wakeups.wake(Topic.LANE, run.turn.route.lane)
            await self._wakeups.wake(Topic.SESSION, run.turn.session_id, at=suspended.until)
        except (TrunklineError, Broken) as error:
            await self._endings.failed(run, error)
        except Exception as error:  # the supervised boundary of a turn: its person is told, the next turn runs
            logger.exception("the turn failed by a fault of ours")
            await self._endings.failed(run, error)

    async def _answer(self, run: Run) -> None:
        if run.turn.stop_requested_by is not None:
            run.left_open = await self._listener.left_open(run)
            raise StopRequested(run.turn.stop_requested_by)
        answer = await self._rounds.answer(run)
        if answer is None:
            await self._endings.unanswered(run)
        else:
            await self._endings.answered(run, answer)

    @asynccontextmanager
    async def _limited(self, breaks: Breaks) -> AsyncIterator[None]:
        """Break the turn off once its time is up."""

        async def ring() -> None:
            await self._clock.sleep(self._time_limit.total_seconds())
            breaks.ask(Why.TIME_IS_UP)

        timer = asyncio.create_task(ring(), name="time limit")
        try:
            yield
        finally:
            timer.cancel()
            await asyncio.gather(timer, return_exceptions=True)
