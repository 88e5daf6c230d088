"""Asking the model once: what it is sent, and what is tried when it refuses that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from loguru import logger

from gateway.domain.decoration import named
from gateway.domain.errors import ContextOverflow, Refused, ThinkingRefused
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.replay.pipeline import Replay
from gateway.domain.session import Session
from gateway.ports.model import Model, ModelRequest, Tail
from gateway.ports.tools import ToolSpec
from gateway.sessions.manager import SessionManager
from gateway.turns.answer import Answer, gather
from gateway.turns.compacting import Compacted, Compactor
from gateway.turns.effort import Effort
from gateway.turns.pictures import UNSEEN, Pictures
from gateway.turns.planning import Plan, Planner
from gateway.turns.run import Run

MOST_REFUSALS = 6
LEAST_HISTORY = 50
"""Tokens of history below which sending half of it would help nobody."""
GO_ON = "[context: the answer was cut off there; continue it exactly where it stops, without repeating any of it]"
NOW = "%A %Y-%m-%d %H:%M UTC"
"""How the time is told to the model."""


class Asker:
    """Makes requests and sends them; holds nothing between them."""

    def __init__(
        self, *, sessions: SessionManager, model: Model, planner: Planner, pictures: Pictures, compactor: Compactor
    ) -> None:
        self._sessions = sessions
        self._compactor = compactor
        self._model = model
        self._planner = planner
        self._pictures = pictures

    async def ask(self, run: Run, so_far: str = "") -> Answer:
        """Return the model's answer. Where it refuses what was sent, less of it is sent, in this turn from then on.

        Only the model's own work is broken off, never what is stored on the way. `so_far` is the beginning of an answer
        that was cut off: the model is asked for what comes after it.
        """
        effort = run.effort
        while True:
            request, replay, plan = await self._request(run)
            if so_far:
                request = replace(request, messages=[*request.messages, *_going_on(so_far)], counted_tokens=0)
            try:
                answer = await run.breaks.within(partial(self._answer, request))
            except ContextOverflow:
                if not await self._made_smaller(run, plan, replay):
                    raise
            except ThinkingRefused:
                if not effort.may_think:
                    raise
                effort.may_think = False
                await self._mark_refused(run.session, replay)
            else:
                if effort.refused is not None:
                    self._planner.refused(run.session, plan, effort.refused)
                return self._counted(answer, request.counted_tokens)

    async def _answer(self, request: ModelRequest) -> Answer:
        return await gather(self._model.stream(request))

    async def compact(self, run: Run) -> Compacted:
        """Compact the session because somebody asked for it: half of what is sent now stays as it is."""
        plan = await self._planner.plan(run.session, run.specs)
        replay = await self._sessions.replay(run.session.id, plan.terms)
        effort = Effort(may_trim=False)
        return await self._compactor.compact(run, plan, effort=effort, keep=replay.tokens // 2)

    async def trim(self, run: Run) -> Compacted:
        """Leave out the oldest part of the session, as was chosen."""
        return await self._compactor.trim(run)

    async def _made_smaller(self, run: Run, plan: Plan, replay: Replay) -> bool:
        """Make the next request smaller, since the provider takes less than it is known for; return whether it is.

        First a compaction keeps half of what was sent; after that, half of what was sent is sent.
        """
        effort = run.effort
        logger.bind(tokens=replay.tokens).warning("the history was too large for the model")
        effort.refusals += 1
        effort.refused = min(replay.tokens, effort.refused or replay.tokens)
        if effort.refusals == 1 and self._planner.compacts:
            outcome = await self._compactor.compact(run, plan, keep=replay.tokens // 2)
        else:
            outcome = Compacted.SKIPPED
        if outcome is not Compacted.SKIPPED:
            return True
        effort.most = min(replay.tokens, effort.most or replay.tokens) // 2
        return effort.refusals <= MOST_REFUSALS and effort.most >= LEAST_HISTORY

    async def _request(self, run: Run) -> tuple[ModelRequest, Replay, Plan]:
        session, effort = run.session, run.effort
        tail = await self._tail(run)
        plan = await self._plan(session, run.specs, tail)
        terms = plan.terms if effort.most is None else replace(plan.terms, budget=min(plan.terms.budget, effort.most))
        replay = await self._sessions.replay(session.id, terms)
        if self._planner.compacts and effort.most is None and await self._compactor.is_due(session, plan, replay):
            await self._compactor.compact(run, plan)
            replay = await self._sessions.replay(session.id, terms)
        request = ModelRequest(
            model=plan.profile.model,
            messages=replay.messages,
            system=plan.profile.system_prompt,
            tools=run.specs,
            tail=plan.tail,
            counted_tokens=replay.tokens + plan.fixed_tokens,
        )
        return request, replay, plan

    async def _tail(self, run: Run) -> Tail:
        """Return what changes every turn and so stands at the end: the time, the place, and the bytes of its files."""
        place = f" · {named(run.session.origin_label)}" if run.session.origin_label else ""
        now = f"[context: {run.turn.started_at.strftime(NOW)}{place}]"
        if not run.has_files:
            return Tail(text=now)
        _, info = self._planner.who(run.session)
        return await self._pictures.tail(run.turn, now, can_see=info.vision)

    async def _plan(self, session: Session, specs: Sequence[ToolSpec], tail: Tail) -> Plan:
        """Plan the request; where pictures leave no room for words, without them."""
        try:
            return await self._planner.plan(session, specs, tail)
        except Refused:
            if not tail.pictures:
                raise
            return await self._planner.plan(session, specs, Tail(text=f"{tail.text}\n{UNSEEN}"))

    def _counted(self, answer: Answer, counted_tokens: int) -> Answer:
        """Return the answer with what its request was counted as, beside what the provider reports."""
        if answer.usage is None:
            return answer
        usage = replace(answer.usage, counted_tokens=counted_tokens)
        self._planner.learn(usage)
        return replace(answer, usage=usage)

    async def _mark_refused(self, session: Session, replay: Replay) -> None:
        """Never send again what was refused: the next turn would fail at it as well."""
        seqs = [message.seq for message in replay.messages if _thinks(message)]
        logger.bind(rows=len(seqs)).warning("the model refused its own thinking; it is asked again without")
        await self._sessions.mark(session.id, seqs, Mark.REFUSED)


def _going_on(so_far: str) -> Sequence[Message]:
    """Return what is asked behind the history: not a row, since nobody said it and the answer will be one."""
    return [Message(role=Role.ASSISTANT, content=so_far), Message(role=Role.USER, kind=Kind.NOTICE, content=GO_ON)]


def _thinks(message: Message) -> bool:
    return bool(message.thinking_blocks or message.reasoning_content)
