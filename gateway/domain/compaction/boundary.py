"""Where the rows begin that stay as they are; what stands before goes into the summary.

Each row is looked at once: a tail's cost is what all rows cost less those before it. A place where a row might begin a
tail is put on a stack, and a tool result takes from it every place after its call, since a tail that begins there would
hold a result whose call is gone. So results may come late and in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.message import Kind, Message, Role
from gateway.domain.replay.timeline import cost
from gateway.domain.replay.window import is_visible


@dataclass(frozen=True, slots=True)
class Place:
    """A row that a tail may begin at, with the tokens and the number of visible rows before it."""

    index: int
    seq: int
    is_user: bool
    tokens_before: int
    rows_before: int


@dataclass(frozen=True, slots=True)
class Places:
    """Every legal place among rows, in order, and what the rows cost together; hidden ones cost nothing."""

    legal: Sequence[Place]
    tokens: int
    rows: int

    def tail(self, place: Place) -> int:
        """Return the tokens of the rows from a place on."""
        return self.tokens - place.tokens_before


def pick_boundary(rows: Sequence[Message], keep_budget: int) -> int | None:
    """Return the seq that the tail begins at, given the rows that no summary covers yet, oldest first.

    It is the earliest user row whose tail fits. Where none does, the newest user turn alone is too large and is cut at
    an assistant row, at the last if no tail fits. None means that nothing before it would be summarised: no progress.
    """
    places = places_in(rows)
    users = [place for place in places.legal if place.is_user]
    chosen = _first_fitting(users, places, keep_budget) or _inside_newest_turn(users, places, keep_budget)
    return chosen.seq if chosen is not None and chosen.rows_before else None


def places_in(rows: Sequence[Message]) -> Places:
    """Return where a tail of the rows may begin: at what a person or the bot said, never between call and result."""
    legal: list[Place] = []
    caller: dict[str, int] = {}
    tokens = shown = 0
    for index, row in enumerate(rows):
        if not is_visible(row):
            continue
        is_user = _is_user(row)
        if is_user or row.role is Role.ASSISTANT:
            legal.append(Place(index, row.seq, is_user, tokens, shown))
        if row.role is Role.ASSISTANT:
            caller.update((call.id, index) for call in row.tool_calls)
        elif row.role is Role.TOOL and (at := caller.get(row.tool_call_id or "")) is not None:
            while legal and legal[-1].index > at:
                legal.pop()
        tokens += cost(row)
        shown += 1
    return Places(legal, tokens, shown)


def _is_user(row: Message) -> bool:
    """Whether the model reads the row as a user message: reports of children are stored as the bot's too."""
    return row.role is Role.USER or (row.role is Role.ASSISTANT and row.kind is Kind.ANNOUNCEMENT)


def _first_fitting(candidates: Sequence[Place], places: Places, keep_budget: int) -> Place | None:
    return next((place for place in candidates if places.tail(place) <= keep_budget), None)


def _inside_newest_turn(users: Sequence[Place], places: Places, keep_budget: int) -> Place | None:
    newest = users[-1] if users else None
    rounds = [place for place in places.legal if newest is None or place.index > newest.index]
    return _first_fitting(rounds, places, keep_budget) or (rounds[-1] if rounds else newest)
