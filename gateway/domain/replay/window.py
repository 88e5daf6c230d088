"""Which rows a replay is made of, before anything is counted."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.legality import LeftOut
from gateway.domain.message import Kind, Mark, Message, Role

HIDDEN_KINDS = frozenset({Kind.COMMAND, Kind.NOTICE, Kind.COMPACTED})
MOST_MESSAGES = 2_000
FEWEST_MESSAGES = 120
TOKENS_A_MESSAGE = 100
"""The three of them bound how many rows a window of tokens stands for, where a number of rows is asked for at all."""


def most_messages(window: int | None) -> int:
    """Return how many rows a model with this context window, in tokens, is sent at most: one for each 100 tokens."""
    if not window or window < 0:
        return MOST_MESSAGES
    return min(max(window // TOKENS_A_MESSAGE, FEWEST_MESSAGES), MOST_MESSAGES)


def visible(rows: Sequence[Message]) -> tuple[list[Message], list[LeftOut]]:
    """Part the rows a model may see from those it may not."""
    shown: list[Message] = []
    hidden: list[LeftOut] = []
    for row in rows:
        # Most rows are neither, and this is asked of each row of a long history.
        if not row.marks and row.kind not in HIDDEN_KINDS:
            shown.append(row)
        elif (hiding := row.marks - {Mark.REFUSED}) or row.kind in HIDDEN_KINDS:
            what = (
                f"marked {', '.join(sorted(hiding))}" if hiding else f"of the kind {row.kind.value}, not for the model"
            )
            hidden.append(LeftOut(row.seq, what))
        else:
            shown.append(row)
    return shown, hidden


def is_visible(row: Message) -> bool:
    """Whether a model may see the row."""
    return row.kind not in HIDDEN_KINDS and not row.marks - {Mark.REFUSED}


def recent_start(rows: Sequence[Message], most: int, *, extend_to_user: bool = False) -> int:
    """Return where the newest `most` rows begin, and at a place where a history may.

    That is the first user row among them, or the proactive delivery right before it. With `extend_to_user`, where no
    user row is among them, the nearest earlier one begins it.
    """
    start = max(0, len(rows) - most)
    users = [place for place, row in enumerate(rows) if row.role is Role.USER]
    inside = next((place for place in users if place >= start), None)
    if inside is None and extend_to_user and users:
        inside, start = users[-1], 0
    if inside is None:
        return start
    return inside - 1 if inside > start and is_delivery(rows[inside - 1]) else inside


def is_delivery(row: Message) -> bool:
    """Whether the row is something the bot said unasked, which a person may have answered."""
    return row.kind is Kind.DELIVERY and row.role is Role.ASSISTANT
