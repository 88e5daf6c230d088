"""The rounds of one turn: replay, ask the model, run tools, and end in an answer or one honest note."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from loguru import logger

from gateway.domain.errors import (
    AuthFailed,
    Filtered,
    LeaseLost,
    Refused,
    TrunklineError,
    Unavailable,
)
from gateway.domain.message import Kind, Message, Role, ToolCall
from gateway.domain.outbound import NewDelivery, Outbound
from gateway.domain.phrases import ENGLISH, Phrases
from gateway.domain.session import Session
from gateway.domain.turn import Turn, TurnState, Usage
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease
from gateway.ports.model import FinishReason
from gateway.ports.outbox import Outbox
from gateway.ports.patience import until_stored
from gateway.ports.tools import ToolContext, Tools, ToolSpec
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Topic, Wakeups
from gateway.sessions.manager import SessionManager
from gateway.turns.answer import Answer
from gateway.turns.asking import Asker
from gateway.turns.choosing import TRIM, Choosing, Suspended, is_about_compaction
from gateway.turns.compacting import Compacted, Effort
from gateway.turns.options import GatewayOptions
from gateway.turns.pictures import Pictures

MAX_ATTEMPTS = 2
"""A turn that killed the process this often is set aside."""


class Runner:
    """Runs turns; holds nothing between them."""

    def __init__(
        self,
        *,
        turns: Turns,
        sessions: SessionManager,
        outbox: Outbox,
        asker: Asker,
        choosing: Choosing,
        pictures: Pictures,
        tools: Tools,
        wakeups: Wakeups,
        clock: Clock,
        options: GatewayOptions,
        phrases: Phrases = ENGLISH,
    ) -> None:
        self._turns = turns
        self._sessions = sessions
        self._outbox = outbox
        self._asker = asker
        self._choosing = choosing
        self._pictures = pictures
        self._tools = tools
        self._wakeups = wakeups
        self._clock = clock
        self._options = options
        self._phrases = phrases

    async def run(self, turn: Turn, lease: Lease) -> None:
        """Run the turn to its end, whichever that is. Raises `LeaseLost` alone, having written nothing more."""
        about = {"session": str(turn.key), "channel": turn.route.channel, "message": turn.route.reply_to}
        with logger.contextualize(**about, turn=turn.id):
            if turn.attempt > MAX_ATTEMPTS:
                logger.error("a turn that ended the process twice is set aside")
                await self._fail(turn, lease, TurnState.SET_ASIDE, self._phrases.set_aside)
                return
            logger.bind(attempt=turn.attempt).info("turn started")
            try:
                await self._rounds(turn, lease)
            except LeaseLost:
                raise
            except Suspended as suspended:
                logger.info("turn waits for an owner's choice")
                await self._wakeups.wake(Topic.LANE, turn.route.lane)
                await self._wakeups.wake(Topic.SESSION, turn.session_id, at=suspended.until)
            except TrunklineError as error:
                logger.bind(error=str(error)).error("turn failed")
                await self._fail(turn, lease, TurnState.FAILED, self._phrase(error))
            except Exception:  # the supervised boundary of a turn: its person is told, the next turn runs
                logger.exception("turn failed by a fault of ours")
                await self._fail(turn, lease, TurnState.FAILED, self._phrases.failed)

    async def _rounds(self, turn: Turn, lease: Lease) -> None:
        session = await self._sessions.get(turn.session_id)
        specs = await self._tools.specs(session)
        effort = Effort()
        if is_about_compaction(turn) and await self._choosing.answer(turn, lease) == TRIM:
            effort.may_ask = False
            await self._asker.trim(turn, lease)
        await self._pictures.fetch(turn, lease)
        commands, said = await self._asked_for(turn)
        if commands and effort.may_ask:
            await self._compact(session, turn, lease, specs)
        if commands and not said:
            await self._end(turn, lease)
            return
        for _ in range(self._options.max_rounds):
            answer = await self._asker.ask(session, turn, lease, specs, effort)
            if answer.is_blank:
                raise Refused("expected an answer from the model, got an empty one")
            if not answer.calls:
                await self._finish(turn, lease, answer)
                return
            results = await asyncio.gather(*(self._call(call, session, turn) for call in answer.calls))
            await self._append(turn, lease, [answer.as_row(), *results], answer.usage)
        raise Refused(f"expected an answer within {self._options.max_rounds} rounds of tools, got more calls")

    async def _asked_for(self, turn: Turn) -> tuple[Sequence[Message], Sequence[Message]]:
        """Return the commands and the other things said in the turn that are not hidden."""
        rows = await self._sessions.rows(turn.session_id, after=turn.first_seq - 1)
        said = [row for row in rows if row.role is Role.USER and not row.marks]
        return [row for row in said if row.kind is Kind.COMMAND], [row for row in said if row.kind is not Kind.COMMAND]

    async def _compact(self, session: Session, turn: Turn, lease: Lease, specs: Sequence[ToolSpec]) -> None:
        outcome = await self._asker.compact(session, turn, lease, specs)
        text = {
            Compacted.SUMMARISED: self._phrases.compacted,
            Compacted.SKIPPED: self._phrases.nothing_to_compact,
            Compacted.FAILED: self._phrases.not_compacted,
        }.get(outcome)
        # That something was left out has been told already.
        if text is not None:
            await until_stored(lambda: self._outbox_note(turn, text), self._clock)

    async def _outbox_note(self, turn: Turn, text: str) -> None:
        if await self._outbox.enqueue([_delivery(turn, "command", text)]):
            await self._wakeups.wake(Topic.LANE, turn.route.lane)

    async def _end(self, turn: Turn, lease: Lease) -> None:
        await until_stored(lambda: self._turns.finish(turn, lease, [], [], None), self._clock)
        await self._wakeups.wake(Topic.LANE, turn.route.lane)

    async def _call(self, call: ToolCall, session: Session, turn: Turn) -> Message:
        result = await self._tools.call(call, ToolContext(session=session, turn_id=turn.id))
        return Message(role=Role.TOOL, content=result.text, tool_call_id=call.id, name=call.name, media=result.media)

    async def _append(self, turn: Turn, lease: Lease, rows: Sequence[Message], usage: Usage | None) -> None:
        await until_stored(lambda: self._turns.append_round(turn, lease, rows, usage), self._clock)

    async def _finish(self, turn: Turn, lease: Lease, answer: Answer) -> None:
        is_cut = answer.reason is FinishReason.LENGTH
        shown = answer.shown
        text = f"{shown}\n\n{self._phrases.cut_off}" if is_cut else shown
        delivery = _delivery(turn, "answer", text)
        row, usage = answer.as_row(), answer.usage
        await until_stored(lambda: self._turns.finish(turn, lease, [row], [delivery], usage), self._clock)
        await self._wakeups.wake(Topic.LANE, turn.route.lane)
        if self._options.titles:
            await self._wakeups.wake(Topic.TITLE, turn.session_id)
        logger.bind(**_spent(usage)).info("turn finished")

    async def _fail(self, turn: Turn, lease: Lease, outcome: TurnState, phrase: str) -> None:
        note = _delivery(turn, "note", phrase.format(reference=turn.id[:8]))
        await until_stored(lambda: self._turns.fail(turn, lease, outcome, [note]), self._clock)
        await self._wakeups.wake(Topic.LANE, turn.route.lane)

    def _phrase(self, error: TrunklineError) -> str:
        if isinstance(error, Unavailable | AuthFailed):
            return self._phrases.unavailable
        return self._phrases.filtered if isinstance(error, Filtered) else self._phrases.failed


def _spent(usage: Usage | None) -> Mapping[str, int]:
    if usage is None:
        return {}
    names = ("input_tokens", "cached_tokens", "output_tokens")
    return {name: getattr(usage, name) for name in names}


def _delivery(turn: Turn, what: str, text: str) -> NewDelivery:
    return NewDelivery(
        route=turn.route,
        outbound=Outbound(text=text),
        dedupe_key=f"turn:{turn.id}:{what}",
        session_id=turn.session_id,
        turn_id=turn.id,
    )
