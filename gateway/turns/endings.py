"""How turns end: each in one transaction, with what a person is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gateway.domain.errors import AuthFailed, Filtered, ModelUnavailable, StopRequested, TrunklineError
from gateway.domain.phrases import Phrases
from gateway.domain.session import Session
from gateway.domain.turn import TurnState, Usage
from gateway.ports.clock import Clock
from gateway.ports.model import FinishReason
from gateway.ports.patience import until_stored
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Topic, Wakeups
from gateway.turns.answer import Answer
from gateway.turns.breaks import Broken
from gateway.turns.run import Run
from gateway.turns.saying import delivery
from gateway.turns.telling import Step, Teller


class TooManyRounds(TrunklineError):
    """The model called tools in every round that it was allowed."""

    def __init__(self, rounds: int) -> None:
        super().__init__(f"expected an answer within {rounds} rounds of tools, got more calls")
        self.rounds = rounds


class Endings:
    """Writes the ends of turns; holds nothing between them."""

    def __init__(
        self,
        *,
        turns: Turns,
        wakeups: Wakeups,
        clock: Clock,
        phrases: Phrases,
        teller: Teller,
        wants_title: Callable[[Session], bool],
    ) -> None:
        self._turns = turns
        self._wakeups = wakeups
        self._clock = clock
        self._phrases = phrases
        self._teller = teller
        self._wants_title = wants_title

    async def answered(self, run: Run, answer: Answer) -> None:
        """End in an answer, or in the silence that the model chose."""
        turn, row, usage = run.turn, answer.as_row(), run.usage
        deliveries = [] if answer.is_silence else [delivery(turn, "answer", self._shown(answer))]
        await until_stored(lambda: self._turns.finish(turn, run.lease, [row], deliveries, usage), self._clock)
        await self._wakeups.wake(Topic.LANE, turn.route.lane)
        if self._wants_title(run.session):
            await self._wakeups.wake(Topic.TITLE, turn.session_id)
        self._teller.of_turn(Step.FINISHED, turn, is_silent=answer.is_silence, **_spent(answer.usage))

    async def unanswered(self, run: Run) -> None:
        """End where nothing was said that wants an answer."""
        await until_stored(lambda: self._turns.finish(run.turn, run.lease, [], [], None), self._clock)
        await self._wakeups.wake(Topic.LANE, run.turn.route.lane)
        self._teller.of_turn(Step.FINISHED, run.turn, is_silent=True)

    async def failed(self, run: Run, error: Exception) -> None:
        """End with one note; the log has the cause. A stop that was asked for meanwhile is obeyed instead."""
        rounds = error.rounds if isinstance(error, TooManyRounds) else 0
        phrase = self._phrase(error)
        try:
            await self._fail(run, TurnState.FAILED, phrase, rounds=rounds)
        except StopRequested as stop:
            await self.stopped(run, stop.by)
            return
        why = "TimeLimit" if isinstance(error, Broken) else type(error).__name__
        about = {"why": why, "reference": run.turn.reference}
        self._teller.of_turn(Step.FAILED, run.turn, level="ERROR", cause=str(error), **about)

    async def stopped(self, run: Run, by: str) -> None:
        """End because somebody asked for it, and say what becomes of the messages that waited."""
        backlog = await until_stored(lambda: self._turns.backlog(run.turn.session_id), self._clock)
        waiting = backlog.stopped
        phrase = self._phrases.stopped_waiting if waiting else self._phrases.stopped
        await self._fail(run, TurnState.STOPPED, phrase)
        self._teller.of_turn(Step.STOPPED, run.turn, by=by, waiting=waiting)

    async def set_aside(self, run: Run) -> None:
        """End a turn that ended the process too often; its rows are not replayed any more."""
        turn = run.turn
        await self._fail(run, TurnState.SET_ASIDE, self._phrases.set_aside)
        self._teller.of_turn(Step.SET_ASIDE, turn, level="ERROR", attempts=turn.attempt - 1, reference=turn.reference)

    async def _fail(self, run: Run, outcome: TurnState, phrase: str, **facts: int) -> None:
        note = delivery(run.turn, "note", phrase.format(reference=run.turn.reference, **facts))
        rows, usage = run.unstored(), run.usage
        await until_stored(
            lambda: self._turns.fail(run.turn, run.lease, outcome, [note], rows=rows, usage=usage), self._clock
        )
        await self._wakeups.wake(Topic.LANE, run.turn.route.lane)

    def _shown(self, answer: Answer) -> str:
        is_cut = answer.reason is FinishReason.LENGTH
        return f"{answer.shown}\n\n{self._phrases.cut_off}" if is_cut else answer.shown

    def _phrase(self, error: Exception) -> str:
        """Return the sentence for an error, with the places of its facts still open."""
        if isinstance(error, ModelUnavailable | AuthFailed):
            return self._phrases.unavailable
        if isinstance(error, TooManyRounds):
            return self._phrases.too_many_rounds
        if isinstance(error, Broken):
            return self._phrases.too_long
        return self._phrases.filtered if isinstance(error, Filtered) else self._phrases.failed


def _spent(usage: Usage | None) -> Mapping[str, Any]:
    if usage is None:
        return {}
    names = ("input_tokens", "cached_tokens", "output_tokens")
    return {name: getattr(usage, name) for name in names}
