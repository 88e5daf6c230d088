"""Making a history legal for any provider, whatever was stored.

The rules are those that both OpenAI-style chat and Anthropic enforce: a history begins with a user message; each tool
result follows the call it answers, and each call has exactly one result; an assistant message says something or calls
something; a call's arguments are a JSON object. Only the offending record is left out, never what stands before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.message import Content, Kind, Message, Role, ToolCall

INTERRUPTED = "This tool call was interrupted; whether it took effect is not known."
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
LONGEST_NAME = 64
"""What OpenAI takes as the name of a tool; models invent others, such as `functions.look`."""
LONGEST_REUSED = 20
"""Characters from which on an id of a call is taken to be random."""
WITHOUT_TEXT = "(a message without text)"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row that is not replayed, and why."""

    seq: int
    reason: str


@dataclass(frozen=True, slots=True)
class Legal:
    """A history every provider takes, and what had to be left out of it."""

    messages: Sequence[Message]
    left_out: Sequence[LeftOut]


def paired(rows: Sequence[Message]) -> Legal:
    """Return the rows in an order and shape every provider takes, wherever a history may begin.

    Pairing twice changes nothing more.
    """
    left_out: list[LeftOut] = []
    results = _results(rows)
    used = {id(result) for result in results.values()}
    legal: list[Message] = []
    for row in rows:
        if row.role is Role.USER:
            legal.append(_user(row))
        elif row.role is Role.ASSISTANT:
            legal += _assistant(row, results, left_out)
        elif row.role is Role.TOOL:
            if id(row) not in used:
                left_out.append(LeftOut(row.seq, "a tool result without a call, or not the last one for it"))
        else:
            left_out.append(LeftOut(row.seq, "the system prompt is built anew each turn"))
    return Legal(legal, left_out)


def is_paired(messages: Sequence[Message]) -> bool:
    """Whether every call among paired messages still has its results right behind it, and every result its call.

    Much cheaper than pairing again, which is not needed where whole exchanges were left out.
    """
    waiting: list[str] = []
    for message in messages:
        if message.role is Role.TOOL:
            if not waiting or message.tool_call_id != waiting.pop():
                return False
        elif waiting:
            return False
        elif message.tool_calls:
            waiting = [call.id for call in reversed(message.tool_calls)]
    return not waiting


def renamed(exchange: Sequence[Message]) -> Sequence[Message]:
    """Give the calls of a row, and their results, ids that no other row has, as some providers demand.

    Only short ones, such as `call_0`, come again; long ones are random. The new id is made of the row alone, so that it
    is the same in every request.
    """
    if not exchange or all(len(call.id) >= LONGEST_REUSED for call in exchange[0].tool_calls):
        return exchange
    seq = exchange[0].seq
    names = {call.id: f"{call.id}-{seq}" for call in exchange[0].tool_calls if len(call.id) < LONGEST_REUSED}
    calls = tuple(replace(call, id=names.get(call.id, call.id)) for call in exchange[0].tool_calls)
    answers = [
        replace(row, tool_call_id=names[row.tool_call_id]) if row.tool_call_id in names else row for row in exchange[1:]
    ]
    return [replace(exchange[0], tool_calls=calls), *answers]


def interrupted(call: ToolCall, seq: int = 0) -> Message:
    """Return the result of a call that was broken off, which nobody can tell more of."""
    return Message(
        role=Role.TOOL,
        kind=Kind.INTERRUPTED,
        content=INTERRUPTED,
        tool_call_id=call.id,
        name=call.name,
        seq=seq,
        tokens=16,
    )


def begun(messages: Sequence[Message]) -> Legal:
    """Return legal messages from the first place where a history may begin.

    That is a user message, or words of the bot right before one.
    """
    start = next((place for place, row in enumerate(messages) if row.role is Role.USER), len(messages))
    if 0 < start < len(messages) and messages[start - 1].role is Role.ASSISTANT and not messages[start - 1].tool_calls:
        start -= 1
    return Legal(messages[start:], [LeftOut(row.seq, "before the first user message") for row in messages[:start]])


def joined(rows: Sequence[Message]) -> Sequence[Message]:
    """Return the rows with neighbours of one role made one, nothing lost; for servers that demand alternation.

    Results of tools stay apart from user text, and a message with calls or thinking stays as it is.
    """
    merged: list[Message] = []
    for row in rows:
        if merged and _may_join(merged[-1], row):
            merged[-1] = _one(merged[-1], row)
        else:
            merged.append(row)
    return merged


def _one(before: Message, after: Message) -> Message:
    tokens = None if before.tokens is None or after.tokens is None else before.tokens + after.tokens
    content = _together(before.content, after.content)
    # What stands for no row, as a summary does, is told by the row that it is one with.
    seq = before.seq or after.seq
    return replace(before, seq=seq, content=content, media=before.media + after.media, tokens=tokens)


def _together(before: Content, after: Content) -> Content:
    if isinstance(before, str) and isinstance(after, str):
        return f"{before}\n\n{after}"
    return [*_blocks(before), *_blocks(after)]


def _blocks(content: Content) -> Sequence[Mapping[str, Any]]:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _results(rows: Sequence[Message]) -> dict[tuple[int, str], Message]:
    """Return the last result for each call, by the identity of the calling row and the id of the call.

    A result may stand later than it should: it belongs to the nearest earlier row that calls it.
    """
    owner: dict[str, int] = {}
    results: dict[tuple[int, str], Message] = {}
    for place, row in enumerate(rows):
        if row.role is Role.ASSISTANT:
            owner.update({call.id: place for call in _calls(row)})
        elif row.role is Role.TOOL and row.tool_call_id in owner:
            results[owner[row.tool_call_id], row.tool_call_id] = row
    return {(id(rows[place]), call): result for (place, call), result in results.items()}


def _user(row: Message) -> Message:
    has_text = bool(row.text.strip())
    # Most rows are legal as they are, and copying them is what a long replay would spend its time on.
    if has_text and not (row.tool_calls or row.thinking_blocks or row.reasoning_content):
        return row
    content = row.content if has_text else WITHOUT_TEXT
    return replace(row, tool_calls=(), thinking_blocks=(), reasoning_content=None, content=content)


def _assistant(row: Message, results: dict[tuple[int, str], Message], left_out: list[LeftOut]) -> Sequence[Message]:
    calls = _calls(row)
    has_text = bool(row.text.strip())
    if not calls and not has_text:
        left_out.append(LeftOut(row.seq, "an assistant message without text or calls"))
        return []
    if has_text and not row.tool_calls:
        return [row]
    is_whole = calls == row.tool_calls and (has_text or row.content is None)
    answers = [results.get((id(row), call.id)) or interrupted(call, row.seq) for call in calls]
    said = row if is_whole else replace(row, content=row.content if has_text else None, tool_calls=calls)
    return [said, *answers]


def _calls(row: Message) -> tuple[ToolCall, ...]:
    """Return the calls that can be replayed: with an id and a name, each id once, arguments an object."""
    if not row.tool_calls:
        return ()
    by_id = {call.id: call for call in row.tool_calls if call.id and call.name}
    return tuple(_sound(call) for call in by_id.values())


def _sound(call: ToolCall) -> ToolCall:
    name, arguments = _NOT_IN_NAMES.sub("_", call.name)[:LONGEST_NAME], _arguments(call.arguments)
    is_sound = name == call.name and arguments == call.arguments
    return call if is_sound else replace(call, name=name, arguments=arguments)


def _arguments(text: str) -> str:
    try:
        return text if isinstance(json.loads(text), dict) else "{}"
    except (ValueError, TypeError, RecursionError):
        return "{}"


def _may_join(before: Message, after: Message) -> bool:
    if before.role is not after.role or before.role not in (Role.USER, Role.ASSISTANT):
        return False
    return not any(row.tool_calls or row.thinking_blocks or row.reasoning_content for row in (before, after))
