"""One row that is too large by itself: thinking goes first, then arguments, then the middle of its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.domain.decoration import neutral
from gateway.domain.message import TOKENS_PER_MESSAGE, Message, Role, ToolCall, countable_text
from gateway.domain.text import last_cut

MARKER_TOKENS = 12
SHORTEST_END = 20
"""Characters of each end that are kept however little room there is."""
LONGEST_ARGUMENTS = 400
"""Characters of a call's arguments that are kept where a row is too large; longer ones go whole, since half is none."""

Count = Callable[[str], int]


def shortened(row: Message, most: int, count: Count) -> Message:
    """Return the row with at most `most` tokens where that can be, its beginning and its end kept alike.

    Only a row that is too large is ever counted again. What cannot be made smaller is returned as it is.
    """
    if _cost(row) <= most:
        return row
    smaller = row
    for step in (_without_thinking, _without_arguments):
        if _cost(smaller) > most and (stepped := step(smaller)) is not smaller:
            smaller = _counted(stepped, count)
    if _cost(smaller) > most:
        smaller = _cut(smaller, most, count)
    return smaller if _cost(smaller) < _cost(row) else row


def _cost(row: Message) -> int:
    return row.tokens if row.tokens is not None else TOKENS_PER_MESSAGE


def _counted(row: Message, count: Count) -> Message:
    return replace(row, tokens=count(countable_text(row)) + TOKENS_PER_MESSAGE)


def _without_thinking(row: Message) -> Message:
    if not (row.thinking_blocks or row.reasoning_content):
        return row
    return replace(row, thinking_blocks=(), reasoning_content=None)


def _without_arguments(row: Message) -> Message:
    long = [call for call in row.tool_calls if len(call.arguments) > LONGEST_ARGUMENTS]
    if not long:
        return row
    calls = tuple(_blank(call) if call in long else call for call in row.tool_calls)
    left_out = "\n".join(
        f"[… {len(call.arguments)} characters left out of the arguments of {call.name} …]" for call in long
    )
    return replace(row, tool_calls=calls, content="\n".join(piece for piece in (row.text, left_out) if piece))


def _blank(call: ToolCall) -> ToolCall:
    return replace(call, arguments="{}")


def _cut(row: Message, most: int, count: Count) -> Message:
    """Cut the middle by the number of characters to a token, again while the ends are denser than the whole."""
    text = row.text
    if len(text) <= 2 * SHORTEST_END:
        return row
    in_text = max(count(text), 1)
    outside = max(_cost(row) - in_text, 0)
    room = max(most - outside - MARKER_TOKENS, 0)
    half = int(len(text) * room / in_text) // 2
    while True:
        half = min(max(half, SHORTEST_END), len(text) // 2)
        shown = _around(text, half, own=row.role is Role.ASSISTANT)
        tokens = outside + count(shown)
        if tokens <= most or half == SHORTEST_END:
            return replace(row, content=shown, tokens=tokens)
        half = int(half * 0.9 * most / tokens)


def _around(text: str, half: int, *, own: bool) -> str:
    head = last_cut(text, 0, half)
    tail = last_cut(text, head, len(text) - half)
    # A cut makes a line begin where none did, and it must not be one that looks like ours.
    end = text[tail:] if own else neutral(text[tail:])
    return f"{text[:head]}\n[… {tail - head} characters left out …]\n{end}"


def thinking_tokens(row: Message, count: Count) -> int:
    """Return what the thinking of a row costs, which a provider that is not sent it does not charge."""
    said = [block.get("thinking") for block in row.thinking_blocks]
    texts = [row.reasoning_content, *(text for text in said if isinstance(text, str))]
    return sum(count(text) for text in texts if text)
