"""Asking a model for the summary of a span of rows: bounded input, no tools, one retry, its cost counted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from loguru import logger

from gateway.domain.calibration import UNKNOWN_FACTOR
from gateway.domain.compaction.fitting import fitted
from gateway.domain.compaction.state import CompactionState, block
from gateway.domain.compaction.summarising import INSTRUCTIONS, SUMMARY_TOKENS, accepted, chunks, question
from gateway.domain.errors import ContextOverflow, LeaseLost, StopRequested, TrunklineError
from gateway.domain.message import Message, Role
from gateway.domain.text import last_cut
from gateway.ports.clock import Clock
from gateway.ports.model import Model, ModelRequest
from gateway.ports.patience import until_stored
from gateway.ports.tokens import TokenCounter
from gateway.ports.turns import Turns
from gateway.turns.answer import Answer, gather
from gateway.turns.breaks import Broken
from gateway.turns.planning import Plan
from gateway.turns.run import Run

ATTEMPTS = 2
LARGEST_INPUT = 100_000
"""Tokens of a piece, however large the window is: a model reads less well the more it is given."""
SMALLEST_INPUT = 200
SURROUNDINGS = 60
"""Tokens of the words around a piece."""
LONGEST_SUMMARY = 24_000
"""Characters of a summary that are kept, whatever a model takes for eight sections."""
MOST_PIECES = 8
"""How many calls one compaction makes at most; of an import of years, the oldest part is kept as facts only."""
SMALLEST_PIECE = 400
"""Characters below which a piece is not parted any more."""


class NoSummary(TrunklineError):
    """No summary can be had now, and why; not an end, since the caller can do without."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a model made of a span."""

    text: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """In whose turn a model is asked."""

    run: Run
    model: str


class Summariser:
    """Sums up spans with the model that is set for it, or else with the session's own."""

    def __init__(self, *, turns: Turns, model: Model, count: TokenCounter, clock: Clock, chosen: str | None) -> None:
        self._turns = turns
        self._model = model
        self._count = count
        self._clock = clock
        self._chosen = chosen

    async def summary(self, run: Run, span: Sequence[Message], before: CompactionState | None, plan: Plan) -> Summary:
        """Return the summary of a span, with what was known before folded in; a large one is folded piece by piece.

        Raises `NoSummary` where the model fails twice or says nothing, and `LeaseLost`, `StopRequested` and `Broken`.
        """
        model = self._chosen or plan.profile.model
        asking = _Asking(run=run, model=model)
        try:
            room = self._room(model)
            so_far = block(fitted(before, room // 2, self._count), self._count).text if before else ""
            most = max(room - self._count(so_far), room // 2)
            pieces = await asyncio.to_thread(chunks, span, most, self._count)
            if len(pieces) > MOST_PIECES:
                logger.bind(pieces=len(pieces)).warning("only the newest part of a very long history is summed up")
            for piece in pieces[-MOST_PIECES:]:
                so_far = await self._folded(asking, piece, so_far)
        except (LeaseLost, StopRequested, Broken):
            raise
        except TrunklineError as error:
            raise NoSummary(f"no summary by {model}: {error}") from error
        except Exception as error:  # the supervised boundary of the summariser: the turn goes on without it
            logger.exception("the summariser failed by a fault of ours")
            raise NoSummary(f"no summary by {model}: {type(error).__name__}") from error
        return Summary(so_far, model)

    def _room(self, model: str) -> int:
        """Return the tokens of a piece and the summary so far together; the rest is for instructions and the answer."""
        info = self._model.info(model)
        answer = min(info.max_output, SUMMARY_TOKENS)
        room = int((info.window - answer) / UNKNOWN_FACTOR) - self._count(INSTRUCTIONS) - SURROUNDINGS
        return max(min(room, LARGEST_INPUT), SMALLEST_INPUT)

    async def _folded(self, asking: _Asking, piece: str, earlier: str) -> str:
        """Fold one piece in; where it is too much for the model after all, one half after the other."""
        try:
            return await self._tried(asking, question(piece, earlier))
        except ContextOverflow:
            halves = _halves(piece)
            if halves is None:
                raise
            return await self._folded(asking, halves[1], await self._folded(asking, halves[0], earlier))

    async def _tried(self, asking: _Asking, text: str) -> str:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = await asking.run.breaks.within(partial(self._asked, asking.model, text))
            except ContextOverflow:
                raise
            except TrunklineError as error:
                if attempt == ATTEMPTS:
                    raise
                logger.bind(error=str(error)).warning("the summariser failed; it is asked once more")
                continue
            await self._count_usage(asking, answer)
            if (summary := accepted(answer.text)) is not None:
                return summary[:LONGEST_SUMMARY]
        raise NoSummary("it said nothing")

    async def _asked(self, model: str, text: str) -> Answer:
        request = ModelRequest(
            model=model,
            system=INSTRUCTIONS,
            messages=[Message(role=Role.USER, content=text)],
            max_output=SUMMARY_TOKENS,
        )
        return await gather(self._model.stream(request))

    async def _count_usage(self, asking: _Asking, answer: Answer) -> None:
        usage = answer.usage
        if usage is not None:
            turn, lease = asking.run.turn, asking.run.lease
            await until_stored(lambda: self._turns.append_round(turn, lease, (), usage), self._clock)


def _halves(piece: str) -> tuple[str, str] | None:
    """Return a piece in two, parted between lines near its middle; None for what is too small to part."""
    if len(piece) < SMALLEST_PIECE:
        return None
    middle = len(piece) // 2
    cut = piece.find("\n", middle)
    cut = cut if cut >= 0 else piece.rfind("\n", 0, middle)
    cut = cut if cut > 0 else last_cut(piece, 0, middle)
    return piece[:cut], piece[cut:]
