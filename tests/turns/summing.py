"""A model that sums up, and conversations long enough for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable

from gateway.domain.compaction.state import CompactionState
from gateway.domain.compaction.summarising import INSTRUCTIONS
from gateway.domain.errors import ContextOverflow, Unavailable
from gateway.domain.turn import Usage
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from tests.fakes import FakeModel
from tests.stores import count_words
from tests.turns.conftest import Rig

RULE = re.compile(r"RULE-\d+")


class Summing(FakeModel):
    """Answers as the fake does, and sums up by keeping every rule it finds; `fails` decides which summaries fail."""

    def __init__(self, *, window: int) -> None:
        super().__init__(window=window)
        self.asked_for_summaries: list[ModelRequest] = []
        self.fails: Callable[[], bool] = lambda: False
        self.limit: int | None = None
        self.takes: int | None = None
        self.pause = 0.0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if request.system != INSTRUCTIONS:
            if self.limit is not None and sum(one.tokens or 0 for one in request.messages) > self.limit:
                self.requests.append(request)
                raise ContextOverflow("too much")
            async for event in super().stream(request):
                yield event
            return
        self.asked_for_summaries.append(request)
        if self.fails():
            raise Unavailable("the summariser is away")
        if self.takes is not None and count_words(request.messages[0].text) > self.takes:
            raise ContextOverflow("too much to sum up")
        await asyncio.sleep(self.pause)
        rules = sorted(set(RULE.findall(request.messages[0].text)))
        yield TextDelta(f"## Goal and standing constraints\n{' '.join(rules) or 'none'}")
        yield UsageReported(Usage(provider="fake", model=request.model, input_tokens=7, output_tokens=3))
        yield Finish(FinishReason.STOP)


def model(rig: Rig) -> Summing:
    assert isinstance(rig.model, Summing)
    return rig.model


async def talk(rig: Rig, turns: int, *, first: int = 0, words: int = 20) -> str:
    """Run turns of some words each; return the id of the session."""
    for n in range(first, first + turns):
        session_id = await rig.turn(f"q{n} " + "word " * words, n)
    return session_id


async def state_of(rig: Rig, session_id: str) -> CompactionState:
    state = CompactionState.read((await rig.store.sessions.get(session_id)).compaction)
    assert state is not None
    return state
