"""A state small enough for a small window: what is told of earlier rows must leave room for the rows themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile

from gateway.domain.compaction.state import CompactionState, block, item
from gateway.domain.message import TOKENS_PER_MESSAGE, Message, Role
from gateway.domain.replay.oversize import shortened
from gateway.domain.replay.timeline import cost
from gateway.domain.text import last_cut

LINE_TOKENS = 1
SHRINKS_BY = 0.8

Count = Callable[[str], int]


def fitted(state: CompactionState, most: int, count: Count) -> CompactionState:
    """Return the state so that its block takes at most these tokens, if that can be.

    The oldest messages go first, then the facts, and the end of the summary last: what a person wants stands first.
    """
    if cost(block(state, count)) <= most:
        return state
    bare = _without(state, len(state.user_messages))
    room = most - cost(block(bare, count))
    if room >= 0:
        return _without(state, len(state.user_messages) - _newest_within(state.user_messages, room, count))
    bare = replace(bare, working_state={})
    while cost(block(bare, count)) > most and bare.summary_text:
        text = bare.summary_text
        end = int(len(text) * SHRINKS_BY)
        bare = replace(bare, summary_text=text[: last_cut(text, 0, end)] if end else "")
    return replace(bare, question=_shortened(bare, most, count)) if bare.question else bare


def _shortened(state: CompactionState, most: int, count: Count) -> str:
    """Return the question with its middle cut, as one that stands in a row would be."""
    others = cost(block(replace(state, question=""), count))
    asked = Message(role=Role.USER, content=state.question, tokens=count(state.question) + TOKENS_PER_MESSAGE)
    return shortened(asked, max(most - others, 1), count).text


def _without(state: CompactionState, oldest: int) -> CompactionState:
    return replace(
        state,
        user_messages=state.user_messages[oldest:],
        user_messages_dropped=state.user_messages_dropped + oldest,
    )


def _newest_within(messages: Sequence[str], room: int, count: Count) -> int:
    totals = accumulate(count(item(message)) + LINE_TOKENS for message in reversed(messages))
    return sum(1 for _ in takewhile(lambda total: total <= room, totals))
