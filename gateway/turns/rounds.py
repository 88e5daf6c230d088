"""The rounds of a turn: ask the model, run the tools it calls, take in what was said meanwhile, and ask again."""

from __future__ import annotations

from collections.abc import Sequence

from loguru import logger

from gateway.domain.busy import BusyModes
from gateway.domain.errors import LeaseLost, Refused, StopRequested, TrunklineError
from gateway.domain.message import Kind, Message, Role
from gateway.ports.clock import Clock
from gateway.ports.model import FinishReason
from gateway.ports.patience import until_stored
from gateway.ports.tools import ToolContext, Tools
from gateway.ports.turns import Turns
from gateway.sessions.manager import SessionManager
from gateway.turns.answer import Answer
from gateway.turns.asking import Asker
from gateway.turns.breaks import Broken, Why
from gateway.turns.calling import Calling, unanswered
from gateway.turns.choosing import TRIM, Choosing, is_about_compaction
from gateway.turns.commanding import Commanding
from gateway.turns.endings import TooManyRounds
from gateway.turns.pictures import Pictures
from gateway.turns.run import Run
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
        sessions: SessionManager,
        asker: Asker,
        choosing: Choosing,
        commanding: Commanding,
        pictures: Pictures,
        tools: Tools,
        clock: Clock,
        modes: BusyModes,
        teller: Teller,
        max_rounds: int,
    ) -> None:
        self._turns = turns
        self._sessions = sessions
        self._asker = asker
        self._choosing = choosing
        self._commanding = commanding
        self._pictures = pictures
        self._tools = tools
        self._clock = clock
        self._modes = modes
        self._teller = teller
        self._max_rounds = max_rounds

    async def answer(self, run: Run) -> Answer | None:
        """Return the answer, which is not stored yet, or None where nothing was said that wants one."""
        if not await self._prepared(run):
            return None
        for number in range(1, self._max_rounds + 1):
            answer = await self._asked(run)
            if not answer.calls:
                return answer
            await self._called(run, answer)
            self._teller.of_turn(Step.ROUND, run.turn, number=number, tools=[call.name for call in answer.calls])
            if self._modes.of(run.turn.key).joins and (rows := await self._join(run)):
                await self._take_in(run, rows)
        raise TooManyRounds(self._max_rounds)

    async def _prepared(self, run: Run) -> bool:
        """Do what comes before the first round; return whether there is anything to answer."""
        turn = run.turn
        if is_about_compaction(turn) and await self._choosing.answer(turn, run.lease) == TRIM:
            run.effort.may_ask = False
            await self._asker.trim(run)
        rows = await self._sessions.all_rows(turn.session_id, after=turn.first_seq - 1)
        if broken_off := unanswered(rows):
            # The process that ran them is gone. They may have had an effect, so they are not run again unasked.
            await self._store(run, broken_off)
        return await self._take_in(run, rows, may_command=run.effort.may_ask)

    async def _take_in(self, run: Run, rows: Sequence[Message], *, may_command: bool = True) -> bool:
        """Fetch the files of what was said and do the commands in it; return whether anything else was said."""
        while True:
            said = [row for row in rows if row.role is Role.USER and not row.marks]
            try:
                async with run.breaks.step():
                    run.specs = run.specs or await self._tools.specs(run.session)
                    if any(row.media for row in rows):
                        run.has_files = True
                        await self._pictures.fetch(run.turn, run.lease)
                    if may_command and (commands := [row for row in said if row.kind is Kind.COMMAND]):
                        await self._commanding.compact(run, commands[-1].seq)
                return any(row.kind is not Kind.COMMAND for row in said)
            except Broken as broken:
                rows = [*rows, *await self._look(run, broken)]

    async def _asked(self, run: Run) -> Answer:
        """Ask until the model has answered whole, however often it is broken off for what was said meanwhile."""
        while True:
            try:
                return await self._whole(run)
            except Broken as broken:
                if rows := await self._look(run, broken):
                    await self._take_in(run, rows)

    async def _whole(self, run: Run) -> Answer:
        """Ask once more where the answer is empty, and on where it was cut off."""
        answer = await self._ask(run)
        if answer.is_blank:
            logger.warning("the model's answer is empty; it is asked once more")
            await self._store(run, ())
            answer = await self._ask(run)
        if answer.is_blank:
            raise Refused("expected an answer from the model, got an empty one twice")
        for _ in range(MOST_CONTINUATIONS):
            if answer.reason is not FinishReason.LENGTH or answer.calls:
                break
            await self._store(run, ())
            try:
                answer = answer.continued(await self._ask(run, answer.text))
            except (LeaseLost, StopRequested):
                raise
            except TrunklineError as error:
                # What there is of the answer is worth more than a note that there is none.
                logger.bind(error=str(error)).warning("an answer that was cut off could not be continued")
                break
        return answer

    async def _ask(self, run: Run, so_far: str = "") -> Answer:
        answer = await run.breaks.within(lambda: self._asker.ask(run, so_far))
        run.usage = answer.usage
        return answer

    async def _called(self, run: Run, answer: Answer) -> None:
        """Run the calls of an answer. That they are asked for is stored first, since from then on they may be done."""
        await self._store(run, [answer.as_row()])
        run.calling = Calling(self._tools, answer.calls, ToolContext(session=run.session, turn_id=run.turn.id))
        broken: Broken | None = None
        try:
            await run.breaks.within(run.calling.run)
        except Broken as caught:
            broken = caught
            if broken.why is Why.TIME_IS_UP:
                raise
        results = run.calling.rows()
        await self._store(run, results)
        run.calling = None
        run.has_files = run.has_files or any(row.media for row in results)
        if broken is not None and (rows := await self._look(run, broken)):
            await self._take_in(run, rows)

    async def _look(self, run: Run, broken: Broken) -> Sequence[Message]:
        """Find out why a step was broken off: a stop raises `StopRequested`; return what was said and joined."""
        if broken.why is Why.TIME_IS_UP:
            raise broken
        run.breaks.looked()
        await self._store(run, ())
        return await self._join(run) if self._modes.of(run.turn.key).joins else ()

    async def _join(self, run: Run) -> Sequence[Message]:
        """Move what has come since into the turn; return its rows."""
        run.breaks.looked()
        joined = await until_stored(lambda: self._turns.join(run.turn, run.lease), self._clock)
        run.turn = joined.turn
        if joined.rows:
            self._teller.of_turn(Step.JOINED, run.turn, messages=len(joined.rows))
        return joined.rows

    async def _store(self, run: Run, rows: Sequence[Message]) -> None:
        """Append rows and what they cost; raises `StopRequested` also where there is nothing to append."""
        usage = run.usage
        await until_stored(lambda: self._turns.append_round(run.turn, run.lease, rows, usage), self._clock)
        run.usage = None
