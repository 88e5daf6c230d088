"""Compaction: what choosing its place costs, and that a conversation of any length costs the same."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from bench.filling import Words, opened
from bench.pairs import medians
from bench.row import Row
from gateway.domain.compaction.boundary import pick_boundary
from gateway.domain.compaction.summarising import INSTRUCTIONS
from gateway.domain.message import Message, Role
from gateway.domain.turn import Usage
from gateway.logs.setup import configure
from gateway.media.files import FileMedia
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Style,
    TextDelta,
    UsageReported,
)
from tests.clock import ManualClock
from tests.fakes import FakeModel
from tests.turns.conftest import OPEN, OneRule, Rig

TURNS = 600


async def measure_compaction(*, rounds: int = 30) -> Sequence[Row]:
    """Measure the choice of a boundary at two lengths, and turns early and late in one long conversation."""
    short, long = _rows(1_600), _rows(3_200)

    async def pick_long() -> None:
        pick_boundary(long, 20_000)

    async def pick_short() -> None:
        pick_boundary(short, 20_000)

    picked = await medians(rounds, pick_long, pick_short)
    times, tokens = await _conversation()
    quarter = TURNS // 4
    early, late = slice(quarter, 2 * quarter), slice(-quarter, None)
    names = (f"turns {quarter}-{2 * quarter} of a compacted conversation", f"turns {TURNS - quarter}-{TURNS}")
    return [
        Row(
            name="choose where to compact, of 3,200 rows",
            ours=picked[0] * 1000,
            floor=picked[1] * 1000,
            unit="ms",
            floor_is="the same of 1,600",
            at_most=2.2,
        ),
        Row(
            name=f"{names[1]}: time of one",
            ours=statistics.median(times[late]) * 1000,
            floor=statistics.median(times[early]) * 1000,
            unit="ms",
            floor_is=names[0],
            at_most=1.3,
        ),
        Row(
            name=f"{names[1]}: tokens sent in one  {_plot(tokens)}",
            ours=statistics.mean(tokens[late]),
            floor=statistics.mean(tokens[early]),
            unit="",
            floor_is=names[0],
            at_most=1.3,
        ),
    ]


def _rows(count: int) -> Sequence[Message]:
    roles = (Role.USER, Role.ASSISTANT)
    return [Message(role=roles[n % 2], content="some words", seq=n + 1, tokens=100) for n in range(count)]


def _plot(values: Sequence[int], points: int = 40) -> str:
    """Return the values as a line of blocks, one for each stretch of turns."""
    size = max(len(values) // points, 1)
    means = [statistics.mean(values[at : at + size]) for at in range(0, len(values), size)]
    highest = max(means)
    return "".join("▁▂▃▄▅▆▇█"[min(int(mean / highest * 8), 7)] for mean in means)


class _Answers(FakeModel):
    """Answers at once, and says of each request what it took."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(provider="bench", name=model, window=8_000, max_output=1_000, style=Style.OPENAI)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if request.system != INSTRUCTIONS:
            self.sent.append(sum(message.tokens or 0 for message in request.messages))
        yield TextDelta("An answer of a few words, as they are." if request.system != INSTRUCTIONS else "## Goal\nnone")
        yield UsageReported(Usage(provider="bench", model=request.model, input_tokens=request.counted_tokens))
        yield Finish(FinishReason.STOP)


async def _conversation() -> tuple[Sequence[float], Sequence[int]]:
    """Talk for many turns, and return the seconds that each took and the tokens that each was sent with."""
    words, model, times = Words(), _Answers(), []
    logging_off = configure(level="error", stderr_level="error")
    with tempfile.TemporaryDirectory() as folder:
        async with opened(Path(folder) / "store.db") as store:
            media = FileMedia(Path(folder) / "media", store.media)
            rig = Rig(store, ManualClock(), model, OneRule(OPEN), media)
            for number in range(TURNS):
                started = time.perf_counter()
                await rig.turn(f"{number} {words.text()}", number)
                times.append(time.perf_counter() - started)
    logging_off()
    return times, model.sent
