"""Making a history legal for any provider, whatever was stored.

The rules are those that both OpenAI-style chat and Anthropic enforce: a history begins with a user message; each tool
result follows the call it answers, and each call has exactly one result; an assistant message says something or calls
something; a call's arguments are a JSON object. Only the offending record is left out, never what stands before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.message import Content, Kind, Message, Role, ToolCall

INTERRUPTED = "This tool call was interrupted; whether it took effect is not known."
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


def legalise(rows: Sequence[Message]) -> Legal:
    """Return the rows in an order and shape every provider takes. Legalising twice changes nothing more."""
    left_out: list[LeftOut] = []
    results = _results(rows)
    used = {id(result) for result in results.values()}
    legal: list[Message] = []
    for row in rows:
        if row.role is Role.TOOL:
            if id(row) not in used:
                left_out.append(LeftOut(row.seq, "a tool result without a call, or not the last one for it"))
        elif row.role is Role.ASSISTANT:
            legal += _assistant(row, results, left_out)
        elif row.role is Role.USER:
            legal.append(_user(row))
        else:
            left_out.append(LeftOut(row.seq, "the system prompt is built anew each turn"))
    start = next((place for place, row in enumerate(legal) if row.role is Role.USER), len(legal))
    left_out += [LeftOut(row.seq, "before the first user message") for row in legal[:start]]
    return Legal(legal[start:], left_out)


def joined(rows: Sequence[Message]) -> Sequence[Message]:
    """Return the rows with neighbours of one role made one, nothing lost; for servers that demand alternation.

    Results of tools stay apart from user text, and a message with calls or thinking stays as it is.
    """
    merged: list[Message] = []
    for row in rows:
        if merged and _may_join(merged[-1], row):
            content = _together(merged[-1].content, row.content)
            merged[-1] = replace(merged[-1], content=content, media=merged[-1].media + row.media)
        else:
            merged.append(row)
    return merged


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
    if has_text and not row.tool_calls:
        return row
    return replace(row, tool_calls=(), content=row.content if has_text else WITHOUT_TEXT)


def _assistant(row: Message, results: dict[tuple[int, str], Message], left_out: list[LeftOut]) -> Iterable[Message]:
    calls = _calls(row)
    has_text = bool(row.text.strip())
    if not calls and not has_text:
        left_out.append(LeftOut(row.seq, "an assistant message without text or calls"))
        return []
    if has_text and not row.tool_calls:
        return [row]
    answers = [results.get((id(row), call.id)) or _interrupted(row, call) for call in calls]
    return [replace(row, content=row.content if has_text else None, tool_calls=calls), *answers]


def _calls(row: Message) -> tuple[ToolCall, ...]:
    """Return the calls that can be replayed: with an id and a name, each id once, arguments an object."""
    if not row.tool_calls:
        return ()
    by_id = {call.id: call for call in row.tool_calls if call.id and call.name}
    return tuple(replace(call, arguments=_arguments(call.arguments)) for call in by_id.values())


def _arguments(text: str) -> str:
    try:
        return text if isinstance(json.loads(text), dict) else "{}"
    except (ValueError, TypeError, RecursionError):
        return "{}"


def _interrupted(row: Message, call: ToolCall) -> Message:
    return Message(
        role=Role.TOOL,
        kind=Kind.INTERRUPTED,
        content=INTERRUPTED,
        tool_call_id=call.id,
        name=call.name,
        seq=row.seq,
        tokens=16,
    )


def _may_join(before: Message, after: Message) -> bool:
    if before.role is not after.role or before.role not in (Role.USER, Role.ASSISTANT):
        return False
    return not any(row.tool_calls or row.thinking_blocks or row.reasoning_content for row in (before, after))
