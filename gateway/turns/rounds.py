"""The rounds of a turn: ask the model, run the tools it calls, take in what was said meanwhile, and ask again."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from loguru import logger

from gateway.domain.errors import LeaseLost, Refused, StopRequested, TrunklineError, Unavailable
from gateway.ports.model import FinishReason
from gateway.ports.tools import ToolContext, Tools
from gateway.ports.turns import Turns
from gateway.turns.answer import Answer
from gateway.turns.asking import Asker
from gateway.turns.breaks import Broken, Why
from gateway.turns.calling import Calling
from gateway.turns.endings import TooManyRounds
from gateway.turns.listening import Listener
from gateway.turns.run import Run
from gateway.turns.strays import Strays
from gateway.turns.telling import Step, Teller

MOST_CONTINUATIONS = 3
"""How often an answer that the model's own limit cut off is asked to go on."""


class Rounds:
    """Runs rounds until there is an answer. What a step has learned is stored before the next one begins.

    Only steps are broken off, never what stores. A step is broken off because something is new in the store; then that
    is looked at, which ends the turn if it is a stop, and else goes on with what was said.
    """

    def __init__(
        self,
        *,
        turns: Turns,
        asker: Asker,
        listener: Listener,
        tools: Tools,
        strays: Strays,
        teller: Teller,
        max_rounds: int,
    ) -> None:
        self._turns = turns
        self._asker = asker
        self._listener = listener
        self._tools = tools
        self._strays = strays
        self._teller = teller
        self._max_rounds = max_rounds

    async def answer(self, run: Run) -> Answer | None:
        """Return the answer, which is not stored yet, or None where nothing was said that wants one."""
        if not await self._listener.begin(run):
            return None
        for number in range(1, self._max_rounds + 1):
            answer = await self._asked(run)
            if not answer.calls:
                return answer
            await self._called(run, answer)
            self._teller.of_turn(Step.ROUND, run.turn, number=number, tools=[call.name for call in answer.calls])
            await self._listener.at_boundary(run)
        answer = await self._asked(run)
        if answer.calls:
            raise TooManyRounds(self._max_rounds)
        return answer

    async def _asked(self, run: Run) -> Answer:
        """Ask until the model has answered whole, however often it is broken off for what was said meanwhile."""
        while True:
            try:
                return await self._whole(run)
            except Broken as broken:
                await self._listener.after_break(run, broken)

    async def _whole(self, run: Run) -> Answer:
        """Ask once more where the answer is empty, and on where it was cut off."""
        answer = await self._ask(run)
        if answer.is_blank:
            logger.warning("the model's answer is empty; it is asked once more")
            await self._listener.store(run, ())
            answer = await self._ask(run)
        if answer.is_blank:
            raise Refused("expected an answer from the model, got an empty one twice")
        for _ in range(MOST_CONTINUATIONS):
            if answer.reason is not FinishReason.LENGTH or answer.calls or answer.is_silence:
                break
            await self._listener.store(run, ())
            more = await self._more(run, answer)
            if more is None or more.is_silence:
                break
            answer = answer.continued(more)
        return answer

    async def _more(self, run: Run, answer: Answer) -> Answer | None:
        """Return what comes after an answer that was cut off, or None where it cannot be had.

        What there is of the answer is worth more than a note that there is none.
        """
        try:
            return await self._ask(run, answer.text)
        except (LeaseLost, StopRequested):
            raise
        except Broken as broken:
            if broken.why is not Why.TIME_IS_UP:
                raise
            logger.warning("there is no time left to continue an answer that was cut off")
        except TrunklineError as error:
            logger.bind(error=str(error)).warning("an answer that was cut off could not be continued")
        return None

    async def _ask(self, run: Run, so_far: str = "") -> Answer:
        answer = await self._asker.ask(run, so_far)
        run.usage = answer.usage
        return answer

    async def _called(self, run: Run, answer: Answer) -> None:
        """Run the calls of an answer. That they are asked for is stored first, since from then on they may be done."""
        await self._listener.store(run, [answer.as_row()])
        context = ToolContext(session=run.session, turn_id=run.turn.id)
        run.calling = calling = Calling(self._tools, answer.calls, context, self._strays)
        broken: Broken | None = None
        try:
            await run.breaks.within(calling.run)
        except Broken as caught:
            broken = caught
            if broken.why is Why.TIME_IS_UP:
                raise
        except asyncio.CancelledError:
            # The process stops, or the lease is lost: what is done is done, and the next process is to know of it.
            with suppress(LeaseLost, StopRequested, Unavailable):
                await self._turns.append_round(run.turn, run.lease, calling.rows(), None)
            raise
        results = calling.rows()
        await self._listener.store(run, results)
        run.calling = None
        run.has_files = run.has_files or any(row.media for row in results)
        if broken is not None:
            await self._listener.after_break(run, broken)
