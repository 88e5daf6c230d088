"""Where a history begins so that it fits a budget: as before while it can, else so that a quarter of it is free.

The beginning stays from turn to turn, since what a provider has cached is paid for anew when it moves. When the budget
is exceeded it moves on to a user message; inside one turn that is larger than all there is, to one of its rounds, and
the question itself stays before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from gateway.domain.message import Message, Role
from gateway.domain.replay.window import is_delivery

OPENING_TOKENS = 24
"""What the words cost that stand before a history which begins with the bot's."""
SHARE_AFTER_CUT = 0.75
"""How much of the budget is used after the beginning has moved, so that it does not move again at once."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What of a history is sent: `question`, if the beginning is inside its turn, and everything from `start` on."""

    start: int
    question: int | None = None


class Costs:
    """A history with what each of its messages costs, to be asked for places."""

    def __init__(self, messages: Sequence[Message], costs: Sequence[int], *, has_head: bool = False) -> None:
        """Take a history; with a head, such as a summary, it may begin at a round, since a message stands before it."""
        self._has_head = has_head
        self._messages = messages
        self._costs = costs
        self._before = [0, *accumulate(costs)]

    def fit(self, begin: int, budget: int) -> Fit:
        """Return what is sent within `budget` tokens, from `begin` on if that fits.

        Where not even the newest question and the newest round after it fit, they are returned all the same, to be
        shortened.
        """
        before = self._as_begun(begin)
        if self.total(before) <= budget:
            return before
        return self._with_words_before(self._moved(begin, budget), budget)

    def total(self, fit: Fit) -> int:
        """Return the tokens of what is sent."""
        sent = self._before[-1] - self._before[fit.start]
        if fit.question is not None:
            return sent + self._costs[fit.question]
        needs_opening = not self._has_head and self._is_role(fit.start, Role.ASSISTANT)
        return sent + (OPENING_TOKENS if needs_opening else 0)

    def _as_begun(self, begin: int) -> Fit:
        if begin >= len(self._messages) or self._may_begin(begin):
            return Fit(begin)
        question = next((place for place in range(begin - 1, -1, -1) if self._is_user(place)), None)
        if question is not None or self._has_head:
            return Fit(begin, question)
        return Fit(self._first_user(begin))

    def _may_begin(self, place: int) -> bool:
        return self._is_user(place) or self._is_words_before(place)

    def _is_words_before(self, place: int) -> bool:
        """Whether the place holds words of the bot right before a user message."""
        message = self._messages[place]
        is_words = message.role is Role.ASSISTANT and not message.tool_calls
        return is_words and place + 1 < len(self._messages) and self._is_user(place + 1)

    def _moved(self, begin: int, budget: int) -> Fit:
        target = int(budget * SHARE_AFTER_CUT)
        users = [place for place in range(begin, len(self._messages)) if self._is_user(place)]
        for place in users:
            fit = Fit(place - 1 if place > begin and is_delivery(self._messages[place - 1]) else place)
            if self.total(fit) <= (target if place != users[-1] else budget):
                return fit
        return self._inside_newest_turn(users[-1] if users else None, begin, budget)

    def _inside_newest_turn(self, question: int | None, begin: int, budget: int) -> Fit:
        if question is None:
            question = next((place for place in range(begin - 1, -1, -1) if self._is_user(place)), None)
        first = begin if question is None else max(question + 1, begin)
        rounds = [p for p in range(first, len(self._messages)) if self._messages[p].role is Role.ASSISTANT]
        for place in rounds:
            fit = Fit(place, question)
            if self.total(fit) <= (int(budget * SHARE_AFTER_CUT) if place != rounds[-1] else budget):
                return fit
        return Fit(rounds[-1] if rounds else len(self._messages), question)

    def _with_words_before(self, fit: Fit, budget: int) -> Fit:
        """Keep the bot's last words before the newest question, which may be what it answers, if they fit."""
        start = fit.start
        if fit.question is not None or not 0 < start < len(self._messages) or not self._is_words_before(start - 1):
            return fit
        with_words = Fit(start - 1)
        return with_words if self._is_newest(start) and self.total(with_words) <= budget else fit

    def _is_newest(self, start: int) -> bool:
        """Whether nobody but the bot speaks after the questions that stand together at `start`."""
        answered = next((p for p in range(start, len(self._messages)) if not self._is_user(p)), len(self._messages))
        return not any(self._is_user(place) for place in range(answered, len(self._messages)))

    def _first_user(self, begin: int) -> int:
        return next((p for p in range(begin, len(self._messages)) if self._is_user(p)), len(self._messages))

    def _is_user(self, place: int) -> bool:
        return self._is_role(place, Role.USER)

    def _is_role(self, place: int, role: Role) -> bool:
        return place < len(self._messages) and self._messages[place].role is role
