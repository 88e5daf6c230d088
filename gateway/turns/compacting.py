"""Making a long session short: when, with whose summary, and what is done when none can be had.

A compaction never touches a row. It moves `consolidated_through` on and keeps a summary and mechanically extracted
facts on the header, which stand before the rows in every replay. It ends in one of three ways: summed up, trimmed
without a summary, or skipped because nothing can go; and it never ends the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from loguru import logger

from gateway.domain.calibration import MOST_FACTOR
from gateway.domain.compaction.boundary import pick_boundary
from gateway.domain.compaction.state import CompactionState
from gateway.domain.compaction.trigger import keep_budget, signal, trigger
from gateway.domain.compaction.trimming import after_summary, trimmed
from gateway.domain.errors import Refused
from gateway.domain.message import Kind, Message, Role
from gateway.domain.phrases import Phrases
from gateway.domain.replay.pipeline import Replay
from gateway.domain.replay.timeline import cost
from gateway.domain.replay.window import is_visible
from gateway.domain.session import Session
from gateway.ports.clock import Clock
from gateway.ports.patience import until_stored
from gateway.ports.tokens import TokenCounter
from gateway.ports.turns import Turns
from gateway.sessions.manager import SessionManager
from gateway.turns.choosing import Choosing
from gateway.turns.effort import Effort
from gateway.turns.options import GatewayOptions
from gateway.turns.planning import Plan
from gateway.turns.run import Run
from gateway.turns.saying import delivery
from gateway.turns.summariser import NoSummary, Summariser
from gateway.turns.telling import Step, Teller

LEAST_GAIN = 0.5
"""How much of what is kept must go at least; a compaction for less would be due again at once."""


class Compacted(StrEnum):
    """How a compaction ended."""

    SUMMARISED = "summarised"
    TRIMMED = "trimmed"
    SKIPPED = "skipped"
    FAILED = "failed"


ENDS = {Compacted.SKIPPED: Step.COMPACTION_SKIPPED, Compacted.FAILED: Step.COMPACTION_FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One session to be made shorter, in the turn under whose lease it is done."""

    run: Run
    session: Session
    before: CompactionState | None
    rows: Sequence[Message]


class Compactor:
    """Compacts sessions; holds nothing between them."""

    def __init__(
        self,
        *,
        turns: Turns,
        sessions: SessionManager,
        summariser: Summariser,
        count: TokenCounter,
        clock: Clock,
        options: GatewayOptions,
        choosing: Choosing,
        teller: Teller,
        phrases: Phrases,
    ) -> None:
        self._turns = turns
        self._sessions = sessions
        self._summariser = summariser
        self._count = count
        self._clock = clock
        self._options = options
        self._choosing = choosing
        self._teller = teller
        self._phrases = phrases

    async def is_due(self, session: Session, plan: Plan, made: Replay) -> bool:
        """Tell whether the next request would take more than the share that starts a compaction."""
        if plan.fixed_tokens * plan.factor >= self._trigger(plan):
            # What is sent besides the history is the most of it, and that cannot be summed up.
            return False
        counted = made.whole + plan.fixed_tokens
        if counted * MOST_FACTOR < self._trigger(plan):
            # However the provider counts, it is far from it; most requests are.
            return False
        latest = await self._turns.latest_usage(session.id)
        expected = signal(
            latest.input_tokens if latest else None, latest.counted_tokens if latest else 0, counted, plan.factor
        )
        return expected >= self._trigger(plan)

    async def compact(
        self, run: Run, plan: Plan, *, effort: Effort | None = None, keep: int | None = None
    ) -> Compacted:
        """Sum up what is older than the kept rows; where no summary can be had, trim, or ask.

        `effort` is the run's own if it is not said. `keep` is how many tokens of rows stay at most, if fewer than the
        settings say. Raises `Suspended` once the turn
        waits for an owner's choice. Each `compacting` that is told of is followed by how it ended.
        """
        effort = effort or run.effort
        if effort.has_nothing_to_go:
            return Compacted.SKIPPED
        self._teller.of_turn(Step.COMPACTING, run.turn)
        ended = Step.COMPACTION_FAILED
        try:
            usual = keep_budget(self._trigger(plan) - int(plan.fixed_tokens * plan.factor), plan.factor)
            kept = max(usual if keep is None else min(keep, usual), 1)
            outcome = await self._unless_changed(run, plan, effort, kept)
            effort.has_nothing_to_go = outcome is Compacted.SKIPPED
            ended = ENDS.get(outcome, Step.COMPACTED)
        finally:
            self._teller.of_turn(ended, run.turn)
        return outcome

    async def trim(self, run: Run) -> Compacted:
        """Leave out the oldest tenth without a summary, as was chosen, or because nobody chose."""
        return await self._trimmed(await self._case(run), None)

    async def _unless_changed(self, run: Run, plan: Plan, effort: Effort, keep: int) -> Compacted:
        try:
            return await self._compacted(run, plan, effort, keep)
        except Refused as error:
            # Rows were hidden or moved while the summary was made: it is of what is no longer so.
            logger.bind(error=str(error)).warning("a summary is not kept")
            return Compacted.SKIPPED

    async def _compacted(self, run: Run, plan: Plan, effort: Effort, keep: int) -> Compacted:
        case = await self._case(run)
        boundary = pick_boundary(case.rows, keep)
        if boundary is None or _gain(case.rows, boundary) < keep * LEAST_GAIN:
            return Compacted.SKIPPED
        if not effort.has_no_summariser:
            try:
                return await self._summarised(case, boundary, plan)
            except NoSummary as error:
                logger.bind(error=str(error)).warning("no summary could be had")
                effort.has_no_summariser = True
            # Nobody is asked again until a summary could be had once more.
            was_trimmed = case.before is not None and case.before.trimmed
            if effort.may_ask and not was_trimmed and self._choosing.may_ask(run.turn, case.rows):
                await self._choosing.ask(run.turn, run.lease, case.rows)
        return await self._trimmed(case, keep) if effort.may_trim else Compacted.FAILED

    async def _case(self, run: Run) -> _Case:
        session = await self._sessions.get(run.turn.session_id)
        before = CompactionState.read(session.compaction)
        rows = await self._sessions.all_rows(session.id, after=session.consolidated_through)
        return _Case(run=run, session=session, before=before, rows=rows)

    def _trigger(self, plan: Plan) -> int:
        # What may be sent at all can be less than the window: by a setting, or since a provider refused more.
        limit = int((plan.terms.budget + plan.fixed_tokens) * plan.factor)
        return trigger(
            plan.info.window,
            self._options.compaction_share,
            self._options.compaction_cap,
            plan.info.max_output,
            limit,
        )

    async def _summarised(self, case: _Case, boundary: int, plan: Plan) -> Compacted:
        span = [row for row in case.rows if row.seq < boundary]
        summary = await self._summariser.summary(case.run, span, case.before, plan)
        state = after_summary(
            case.before,
            case.rows,
            boundary,
            summary.text,
            created_at=self._clock.now().isoformat(),
            model_used=summary.model,
        )
        await self._store(case, boundary, state, self._phrases.compacted)
        return Compacted.SUMMARISED

    async def _trimmed(self, case: _Case, keep: int | None) -> Compacted:
        made = trimmed(case.before, case.rows, keep, created_at=self._clock.now().isoformat())
        if made is None:
            return Compacted.SKIPPED
        state, boundary = made
        await self._store(case, boundary, state, self._phrases.trimmed)
        return Compacted.TRIMMED

    async def _store(self, case: _Case, boundary: int, state: CompactionState, text: str) -> None:
        through = max((row.seq for row in case.rows if row.seq < boundary), default=case.session.consolidated_through)
        mark = Message(role=Role.SYSTEM, kind=Kind.COMPACTED, content=text)
        # A person is told only when something is gone for the bot, and once in a turn.
        notes = [delivery(case.run.turn, "trimmed", text)] if state.trimmed else []
        stored = replace(state, question=_question(case, boundary)).as_stored()
        await until_stored(
            lambda: self._turns.consolidate(
                case.run.turn,
                case.run.lease,
                through,
                stored,
                [mark],
                revision=case.session.revision,
                deliveries=notes,
            ),
            self._clock,
        )


def _gain(rows: Sequence[Message], boundary: int) -> int:
    return sum(cost(row) for row in rows if row.seq < boundary and is_visible(row))


def _question(case: _Case, boundary: int) -> str:
    """Return what the person asked last where the rows that stay begin inside that turn, or nothing."""
    asked = [row for row in case.rows if row.role is Role.USER and row.kind is Kind.CHAT and is_visible(row)]
    if not asked:
        return case.before.question if case.before else ""
    return asked[-1].text if asked[-1].seq < boundary else ""
