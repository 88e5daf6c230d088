"""What of a session the model is sent: a pure function from stored rows to a legal, bounded history.

The newest rows that fit the budget are kept, beginning at a user message, so that no call is parted from its result.
The newest user message is always there; if it alone is over the budget its middle is cut, with a marker that says how
much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.domain.legality import LeftOut, joined, legalise
from gateway.domain.message import TOKENS_PER_MESSAGE, Kind, Message, Role

HIDDEN_KINDS = frozenset({Kind.COMMAND, Kind.NOTICE})
MARKER_TOKENS = TOKENS_PER_MESSAGE + 12
"""What the marker of a cut message costs, with the message's own overhead."""
SHORTEST_END = 20
"""Characters of each end of a cut message that are kept however small the budget is."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A history to send, its tokens as counted when its rows were stored, and what was left out of it."""

    messages: Sequence[Message]
    tokens: int
    left_out: Sequence[LeftOut]


def build(rows: Sequence[Message], *, budget: int) -> Replay:
    """Return the history of `rows` (oldest first) that fits `budget` tokens, legal for every provider."""
    shown, hidden = _visible(rows)
    legal = legalise(shown)
    fitting, over = _fit(legal.messages, budget)
    messages = joined(legalise(fitting).messages)
    return Replay(messages, _total(fitting), [*hidden, *legal.left_out, *over])


def _visible(rows: Sequence[Message]) -> tuple[list[Message], list[LeftOut]]:
    shown, hidden = [], []
    for row in rows:
        if row.marks:
            hidden.append(LeftOut(row.seq, "marked " + ", ".join(sorted(row.marks))))
        elif row.kind in HIDDEN_KINDS:
            hidden.append(LeftOut(row.seq, f"a {row.kind.value} is not for the model"))
        else:
            shown.append(row)
    return shown, hidden


def _fit(rows: Sequence[Message], budget: int) -> tuple[Sequence[Message], list[LeftOut]]:
    """Keep the newest turns that fit; of the newest turn alone, its user message and the newest rounds that fit."""
    start, spent = len(rows), 0
    for place in range(len(rows) - 1, -1, -1):
        spent += _cost(rows[place])
        if spent > budget:
            break
        if rows[place].role is Role.USER:
            start = place
    if start < len(rows):
        return rows[start:], _over(rows[:start])
    return _fit_newest_turn(rows, budget)


def _fit_newest_turn(rows: Sequence[Message], budget: int) -> tuple[Sequence[Message], list[LeftOut]]:
    newest = max((place for place, row in enumerate(rows) if row.role is Role.USER), default=None)
    if newest is None:
        return (), _over(rows)
    question = _cut(rows[newest], budget)
    start, spent = len(rows), _cost(question)
    for place in range(len(rows) - 1, newest, -1):
        spent += _cost(rows[place])
        if spent > budget:
            break
        if rows[place].role is Role.ASSISTANT:
            start = place
    return [question, *rows[start:]], _over([*rows[:newest], *rows[newest + 1 : start]])


def _cut(row: Message, budget: int) -> Message:
    """Cut the middle of a message that alone is over the budget, by its own number of characters to a token."""
    cost, text = _cost(row), row.text
    if cost <= budget:
        return row
    # The densest half may stand at one end, so a margin is kept besides what the marker takes.
    kept = int(len(text) * max(budget - MARKER_TOKENS, 0) / cost * 0.9)
    half = min(max(kept // 2, SHORTEST_END), len(text) // 2)
    marker = f"\n[… {len(text) - 2 * half} characters left out …]\n"
    if len(text) <= 2 * half + len(marker):
        return row
    return replace(row, content=text[:half] + marker + text[len(text) - half :], tokens=min(cost, budget))


def _cost(row: Message) -> int:
    return row.tokens if row.tokens is not None else TOKENS_PER_MESSAGE


def _total(rows: Sequence[Message]) -> int:
    return sum(_cost(row) for row in rows)


def _over(rows: Sequence[Message]) -> list[LeftOut]:
    return [LeftOut(row.seq, "over the token budget") for row in rows]
