"""Taking in what is said to a turn: at its beginning, at a tool boundary, and where it was broken off for it."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.busy import BusyModes
from gateway.domain.message import Kind, Message, Role
from gateway.domain.turn import Joined, Usage
from gateway.ports.clock import Clock
from gateway.ports.patience import until_stored
from gateway.ports.tools import Tools
from gateway.ports.turns import Turns
from gateway.sessions.manager import SessionManager
from gateway.turns.asking import Asker
from gateway.turns.breaks import Broken, Why
from gateway.turns.calling import unanswered
from gateway.turns.choosing import TRIM, Choosing, is_about_compaction
from gateway.turns.commanding import Commanding
from gateway.turns.pictures import Pictures
from gateway.turns.run import Run
from gateway.turns.telling import Step, Teller

MOST_INTERRUPTIONS = 5
"""In a row; after that, input joins at the next tool boundary, or who never stops writing would never be answered."""


class Listener:
    """Moves input into turns and does what comes with it; holds nothing between them."""

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

    async def begin(self, run: Run) -> bool:
        """Do what comes before the first round; return whether there is anything to answer."""
        if is_about_compaction(run.turn):
            choice, joined = await self._choosing.answer(run.turn, run.lease)
            self._note(run, joined)
            if choice == TRIM:
                run.effort.may_ask = False
                await self._asker.trim(run)
        rows = await self._sessions.all_rows(run.turn.session_id, after=run.turn.first_seq - 1)
        if broken_off := unanswered(rows):
            # The process that ran them is gone. They may have had an effect, so they are not run again unasked.
            await self.store(run, broken_off)
        return await self.take_in(run, rows, may_command=run.effort.may_ask)

    async def left_open(self, run: Run) -> Sequence[Message]:
        """Return results for the calls that a dead process left without any."""
        rows = await self._sessions.all_rows(run.turn.session_id, after=run.turn.first_seq - 1)
        return unanswered(rows)

    async def at_boundary(self, run: Run) -> None:
        """Take in what came while tools ran, where the chat's mode says so."""
        run.interruptions = 0
        run.breaks.may_interrupt = True
        if self._modes.of(run.turn.key).joins and (rows := await self._join(run)):
            await self.take_in(run, rows)

    async def after_break(self, run: Run, broken: Broken) -> None:
        """Find out why a step was broken off: a stop raises `StopRequested`, what was said is taken in."""
        if rows := await self._look(run, broken):
            await self.take_in(run, rows)

    async def take_in(self, run: Run, rows: Sequence[Message], *, may_command: bool = True) -> bool:
        """Fetch the files of what was said and do the commands in it; return whether anything else was said."""
        while True:
            said = [row for row in rows if row.role is Role.USER and not row.marks]
            try:
                await self._prepare(run, rows)
                if may_command and (commands := [row for row in said if row.kind is Kind.COMMAND]):
                    await self._commanding.compact(run, commands[-1].seq)
                return any(row.kind is not Kind.COMMAND for row in said)
            except Broken as broken:
                rows = [*rows, *await self._look(run, broken)]

    async def store(self, run: Run, rows: Sequence[Message]) -> None:
        """Append rows and what they cost; raises `StopRequested` also where there is nothing to append."""
        usage: Usage | None = run.usage
        await until_stored(lambda: self._turns.append_round(run.turn, run.lease, rows, usage), self._clock)
        run.usage = None

    async def _prepare(self, run: Run, rows: Sequence[Message]) -> None:
        if not run.specs:
            run.specs = await run.breaks.within(lambda: self._tools.specs(run.session))
        if any(row.media for row in rows):
            run.has_files = True
            await self._pictures.fetch(run)

    async def _look(self, run: Run, broken: Broken) -> Sequence[Message]:
        if broken.why is Why.TIME_IS_UP:
            raise broken
        run.interruptions += broken.why is Why.INPUT
        run.breaks.may_interrupt = run.interruptions < MOST_INTERRUPTIONS
        run.breaks.looked()
        await self.store(run, ())
        return await self._join(run) if self._modes.of(run.turn.key).joins else ()

    async def _join(self, run: Run) -> Sequence[Message]:
        run.breaks.looked()
        joined = await until_stored(lambda: self._turns.join(run.turn, run.lease), self._clock)
        self._note(run, joined)
        return joined.rows

    def _note(self, run: Run, joined: Joined) -> None:
        run.turn = joined.turn
        if joined.rows:
            self._teller.of_turn(Step.JOINED, run.turn, messages=len(joined.rows))
