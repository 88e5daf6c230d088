"""Asking the model once: what it is sent, and what is tried when it refuses that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loguru import logger

from gateway.domain.decoration import named
from gateway.domain.errors import ContextOverflow, Refused, ThinkingRefused
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.replay.pipeline import Replay
from gateway.domain.session import Session
from gateway.domain.turn import Turn
from gateway.ports.leases import Lease
from gateway.ports.model import Model, ModelRequest, Tail
from gateway.ports.tools import ToolSpec
from gateway.sessions.manager import SessionManager
from gateway.turns.answer import Answer, gather
from gateway.turns.compacting import Compacted, Compactor, Effort
from gateway.turns.pictures import UNSEEN, Pictures
from gateway.turns.planning import Plan, Planner

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

    async def ask(
        self, session: Session, turn: Turn, lease: Lease, specs: Sequence[ToolSpec], effort: Effort, so_far: str = ""
    ) -> Answer:
        """Return the model's answer. Where it refuses what was sent, less of it is sent, in this turn from then on.

        `so_far` is the beginning of an answer that was cut off: the model is asked for what comes after it.
        """
        while True:
            request, replay, plan = await self._request(session, turn, lease, specs, effort)
            if so_far:
                request = replace(request, messages=[*request.messages, *_going_on(so_far)], counted_tokens=0)
            try:
                answer = await gather(self._model.stream(request))
            except ContextOverflow:
                if not await self._made_smaller(turn, lease, plan, replay, effort):
                    raise
            except ThinkingRefused:
                if not effort.may_think:
                    raise
                effort.may_think = False
                await self._mark_refused(session, replay)
            else:
                if effort.refused is not None:
                    self._planner.refused(session, plan, effort.refused)
                return _with_count(answer, request.counted_tokens)

    async def compact(self, session: Session, turn: Turn, lease: Lease, specs: Sequence[ToolSpec]) -> Compacted:
        """Compact the session because somebody asked for it: half of what is sent now stays as it is."""
        plan = await self._planner.plan(session, specs)
        replay = await self._sessions.replay(session.id, plan.terms)
        return await self._compactor.compact(turn, lease, plan, Effort(may_trim=False), keep=replay.tokens // 2)

    async def trim(self, turn: Turn, lease: Lease) -> Compacted:
        """Leave out the oldest part of the session, as was chosen."""
        return await self._compactor.trim(turn, lease)

    async def _made_smaller(self, turn: Turn, lease: Lease, plan: Plan, replay: Replay, effort: Effort) -> bool:
        """Make the next request smaller, since the provider takes less than it is known for; return whether it is.

        First a compaction keeps half of what was sent; after that, half of what was sent is sent.
        """
        logger.bind(tokens=replay.tokens).warning("the history was too large for the model")
        effort.refusals += 1
        effort.refused = min(replay.tokens, effort.refused or replay.tokens)
        if effort.refusals == 1 and self._planner.compacts:
            outcome = await self._compactor.compact(turn, lease, plan, effort, keep=replay.tokens // 2)
        else:
            outcome = Compacted.SKIPPED
        if outcome is not Compacted.SKIPPED:
            return True
        effort.most = min(replay.tokens, effort.most or replay.tokens) // 2
        return effort.refusals <= MOST_REFUSALS and effort.most >= LEAST_HISTORY

    async def _request(
        self, session: Session, turn: Turn, lease: Lease, specs: Sequence[ToolSpec], effort: Effort
    ) -> tuple[ModelRequest, Replay, Plan]:
        tail = await self._tail(session, turn)
        plan = await self._plan(session, specs, tail)
        terms = plan.terms if effort.most is None else replace(plan.terms, budget=min(plan.terms.budget, effort.most))
        replay = await self._sessions.replay(session.id, terms)
        if self._planner.compacts and effort.most is None and await self._compactor.is_due(session, plan, replay):
            await self._compactor.compact(turn, lease, plan, effort)
            replay = await self._sessions.replay(session.id, terms)
        request = ModelRequest(
            model=plan.profile.model,
            messages=replay.messages,
            system=plan.profile.system_prompt,
            tools=specs,
            tail=plan.tail,
            counted_tokens=replay.tokens + plan.fixed_tokens,
        )
        return request, replay, plan

    async def _tail(self, session: Session, turn: Turn) -> Tail:
        """Return what changes every turn and so stands at the end: the time, the place, and the bytes of its files."""
        _, info = self._planner.who(session)
        place = f" · {named(session.origin_label)}" if session.origin_label else ""
        now = f"[context: {turn.started_at.strftime(NOW)}{place}]"
        return await self._pictures.tail(turn, now, can_see=info.vision)

    async def _plan(self, session: Session, specs: Sequence[ToolSpec], tail: Tail) -> Plan:
        """Plan the request; where pictures leave no room for words, without them."""
        try:
            return await self._planner.plan(session, specs, tail)
        except Refused:
            if not tail.pictures:
                raise
            return await self._planner.plan(session, specs, Tail(text=f"{tail.text}\n{UNSEEN}"))

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


def _with_count(answer: Answer, counted_tokens: int) -> Answer:
    """Return the answer with what its request was counted as, beside what the provider reports."""
    usage = answer.usage and replace(answer.usage, counted_tokens=counted_tokens)
    return replace(answer, usage=usage)
