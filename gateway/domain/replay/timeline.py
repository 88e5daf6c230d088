"""A history under construction, kept from turn to turn so that a new row costs itself and not the whole again.

Rows go through the same stages whether they come at once or one by one: what a model may not see is left out, each row
is decorated, calls get their results, and one that is too large is shortened. Everything before the newest user message
is settled: it stays as it is, unless a late result turns up for a call in it, and then all is worked out anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.domain.decoration import decorated
from gateway.domain.legality import LeftOut, paired, renamed
from gateway.domain.message import TOKENS_PER_MESSAGE, Mark, Message, Role
from gateway.domain.replay.oversize import Count, shortened, thinking_tokens
from gateway.domain.replay.window import is_visible, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows are read: `provider` is whose thinking may go along, `largest` the most tokens of one row."""

    count: Count
    largest: int
    provider: str = ""
    runtime_context: bool = True


@dataclass(slots=True)
class Timeline:
    """The legal messages of a session so far, what each costs, and what was left out."""

    reading: Reading
    messages: list[Message] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    through: int = 0
    _rows: list[Message] = field(default_factory=list)
    _settled_rows: int = 0
    _settled: int = 0
    _settled_left_out: int = 0
    _called: set[str] = field(default_factory=set)
    _weight: int = 0

    @property
    def weight(self) -> int:
        """The tokens of the rows it holds, cut or not."""
        return self._weight

    def add(self, rows: Sequence[Message]) -> None:
        """Add rows that follow those before, in order."""
        if not rows:
            return
        self._rows += rows
        self._weight += sum(map(cost, rows))
        self.through = rows[-1].seq
        if self._answers_settled(rows):
            self._forget()
        del self.messages[self._settled :], self.costs[self._settled :], self.left_out[self._settled_left_out :]
        self._work_out(self._rows[self._settled_rows :])

    def _answers_settled(self, rows: Sequence[Message]) -> bool:
        """Whether one of the rows is a result for a call that is settled, and not for a newer one of the same id."""
        results = {row.tool_call_id for row in rows if row.role is Role.TOOL} & self._called
        if not results:
            return False
        unsettled = self._rows[self._settled_rows :]
        return bool(results - {call.id for row in unsettled if _calls(row) for call in row.tool_calls})

    def _forget(self) -> None:
        self._settled_rows = self._settled = self._settled_left_out = 0
        self._called.clear()

    def _work_out(self, rows: Sequence[Message]) -> None:
        newest = next((place for place in range(len(rows) - 1, -1, -1) if rows[place].role is Role.USER), 0)
        if newest and not _is_split(rows, newest):
            self._append(rows[:newest])
            self._settled_rows += newest
            self._settled, self._settled_left_out = len(self.messages), len(self.left_out)
            self._called |= {call.id for row in rows[:newest] if _calls(row) for call in row.tool_calls}
            rows = rows[newest:]
        self._append(rows)

    def _append(self, rows: Sequence[Message]) -> None:
        shown, hidden = visible(rows)
        legal = paired([self._read(row) for row in shown])
        made = _renamed(legal.messages)
        self.messages += made
        self.costs += [cost(message) for message in made]
        self.left_out += hidden
        self.left_out += legal.left_out

    def _read(self, row: Message) -> Message:
        """Return the row as the model reads it, with what that costs."""
        plain = self._thinking_kept(row)
        shown = decorated(plain, runtime_context=self.reading.runtime_context)
        if shown is not plain:
            shown = replace(shown, tokens=_recounted(plain, shown, self.reading.count))
        return (
            shown if cost(shown) <= self.reading.largest else shortened(shown, self.reading.largest, self.reading.count)
        )

    def _thinking_kept(self, row: Message) -> Message:
        if not (row.thinking_blocks or row.reasoning_content):
            return row
        if row.provider == self.reading.provider and Mark.REFUSED not in row.marks:
            return row
        tokens = max(cost(row) - thinking_tokens(row, self.reading.count), TOKENS_PER_MESSAGE)
        return replace(row, thinking_blocks=(), reasoning_content=None, tokens=tokens)


def _renamed(messages: Sequence[Message]) -> list[Message]:
    made: list[Message] = []
    place = 0
    while place < len(messages):
        end = place + 1
        while end < len(messages) and messages[end].role is Role.TOOL:
            end += 1
        made += renamed(messages[place:end])
        place = end
    return made


def cost(row: Message) -> int:
    """Return the tokens of a row as they were counted when it was stored, or made."""
    return row.tokens if row.tokens is not None else TOKENS_PER_MESSAGE


def _recounted(before: Message, after: Message, count: Count) -> int:
    """Return the stored count, with the lines that were added to the row or taken from it."""
    old, new = before.text, after.text
    if len(new) >= len(old) and old and (at := new.find(old)) >= 0:
        return cost(before) + sum(count(piece) for piece in (new[:at], new[at + len(old) :]) if piece)
    return count(new) + TOKENS_PER_MESSAGE


def _calls(row: Message) -> bool:
    """Whether the row asks for tools that a model would see it ask for."""
    return row.role is Role.ASSISTANT and bool(row.tool_calls) and is_visible(row)


def _is_split(rows: Sequence[Message], place: int) -> bool:
    """Whether a call before `place` has a result behind it; one that has none at all is settled as interrupted."""
    called = {call.id for row in rows[:place] if _calls(row) for call in row.tool_calls}
    newer: set[str] = set()
    for row in rows[place:] if called else ():
        if _calls(row):
            newer |= {call.id for call in row.tool_calls}
        elif row.role is Role.TOOL and row.tool_call_id in called - newer:
            return True
    return False
