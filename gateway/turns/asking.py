"""Asking the model once: what it is sent, and what is tried when it refuses that."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from loguru import logger

from gateway.domain.decoration import named
from gateway.domain.errors import ContextOverflow, Refused, ThinkingRefused
from gateway.domain.message import Mark, Message
from gateway.domain.replay.pipeline import Replay
from gateway.domain.session import Session
from gateway.domain.turn import Turn
from gateway.ports.model import Model, ModelRequest, Tail
from gateway.ports.tools import ToolSpec
from gateway.sessions.manager import SessionManager
from gateway.turns.answer import Answer, gather
from gateway.turns.pictures import UNSEEN, Pictures
from gateway.turns.planning import Plan, Planner

MOST_HALVINGS = 5
LEAST_HISTORY = 50
"""Tokens of history below which sending half of it would help nobody."""
NOW = "%A %Y-%m-%d %H:%M UTC"
"""How the time is told to the model."""


class Asker:
    """Makes requests and sends them; holds nothing between them."""

    def __init__(self, *, sessions: SessionManager, model: Model, planner: Planner, pictures: Pictures) -> None:
        self._sessions = sessions
        self._model = model
        self._planner = planner
        self._pictures = pictures

    async def ask(self, session: Session, turn: Turn, specs: Sequence[ToolSpec]) -> Answer:
        """Return the model's answer. Where it refuses what was sent, less of it is sent, once for each reason."""
        most, may_think = None, True
        for attempt in itertools.count(1):
            request, replay = await self._request(session, turn, specs, most)
            try:
                answer = await gather(self._model.stream(request))
            except ContextOverflow:
                # The provider takes less than it is known for: less of the history is better than no answer.
                most = replay.tokens // 2
                if attempt > MOST_HALVINGS or most < LEAST_HISTORY:
                    raise
                logger.bind(tokens=replay.tokens).warning("the history was too large for the model; half of it is sent")
            except ThinkingRefused:
                if not may_think:
                    raise
                may_think = False
                await self._mark_refused(session, replay)
            else:
                return _with_count(answer, request.counted_tokens)
        raise AssertionError("the count has no end")

    async def _request(
        self, session: Session, turn: Turn, specs: Sequence[ToolSpec], most: int | None
    ) -> tuple[ModelRequest, Replay]:
        tail = await self._tail(session, turn)
        plan = await self._plan(session, specs, tail)
        terms = plan.terms if most is None else replace(plan.terms, budget=min(plan.terms.budget, most))
        replay = await self._sessions.replay(session.id, terms)
        request = ModelRequest(
            model=plan.profile.model,
            messages=replay.messages,
            system=plan.profile.system_prompt,
            tools=specs,
            tail=plan.tail,
            counted_tokens=replay.tokens + plan.fixed_tokens,
        )
        return request, replay

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


def _thinks(message: Message) -> bool:
    return bool(message.thinking_blocks or message.reasoning_content)


def _with_count(answer: Answer, counted_tokens: int) -> Answer:
    """Return the answer with what its request was counted as, beside what the provider reports."""
    usage = answer.usage and replace(answer.usage, counted_tokens=counted_tokens)
    return replace(answer, usage=usage)
