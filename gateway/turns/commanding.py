"""Doing what people ask of the gateway in their place among the messages: a compaction, by hand."""

from __future__ import annotations

from gateway.domain.phrases import Phrases
from gateway.ports.clock import Clock
from gateway.ports.outbox import Outbox
from gateway.ports.patience import until_stored
from gateway.ports.wakeups import Topic, Wakeups
from gateway.turns.asking import Asker
from gateway.turns.compacting import Compacted
from gateway.turns.run import Run
from gateway.turns.saying import delivery


class Commanding:
    """Runs commands within a turn and says what came of them."""

    def __init__(self, *, asker: Asker, outbox: Outbox, wakeups: Wakeups, clock: Clock, phrases: Phrases) -> None:
        self._asker = asker
        self._outbox = outbox
        self._wakeups = wakeups
        self._clock = clock
        self._phrases = phrases

    async def compact(self, run: Run, seq: int) -> None:
        """Sum up the older part of the session, as the row at `seq` asks."""
        outcome = await self._asker.compact(run)
        text = {
            Compacted.SUMMARISED: self._phrases.compacted,
            Compacted.SKIPPED: self._phrases.nothing_to_compact,
            Compacted.FAILED: self._phrases.not_compacted,
        }.get(outcome)
        # That something was left out has been told already.
        if text is not None:
            await until_stored(lambda: self._note(run, seq, text), self._clock)

    async def _note(self, run: Run, seq: int, text: str) -> None:
        if await self._outbox.enqueue([delivery(run.turn, f"command:{seq}", text)]):
            await self._wakeups.wake(Topic.LANE, run.turn.route.lane)
