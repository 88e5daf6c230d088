"""Rows to be replayed, and a judge of what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from gateway.domain.message import Kind, Mark, Message, Role, ToolCall
from gateway.domain.replay.pipeline import Replay, Terms, build

ROOMY = 10**9


def row(role: Role, text: str | None, seq: int, *, calls: Sequence[str] = (), answers: str | None = None) -> Message:
    return Message(
        role=role,
        content=text,
        seq=seq,
        tool_calls=tuple(ToolCall(id=id, name="look", arguments="{}") for id in calls),
        tool_call_id=answers,
        tokens=4 + len(text or ""),
    )


def history(*entries: tuple[str, str | None] | tuple[str, str | None, object]) -> list[Message]:
    """Build rows from ("user", text), ("assistant", text, [call ids]) and ("tool", text, id)."""
    rows = []
    for seq, (role, text, *more) in enumerate(entries, start=1):
        extra: object = more[0] if more else None
        calls = extra if isinstance(extra, list) else []
        rows.append(row(Role(role), text, seq, calls=calls, answers=extra if isinstance(extra, str) else None))
    return rows


def shape(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


def letters(text: str) -> int:
    """Count a token a letter, so that budgets in tests are easy to see."""
    return len(text)


def replayed(rows: Sequence[Message], budget: int = ROOMY, **terms: object) -> Replay:
    """Return what is sent of rows within a budget."""
    return build(rows, Terms(budget=budget, **terms), letters)  # type: ignore[arg-type]


def is_legal(messages: Sequence[Message]) -> bool:
    """Judge a history by the rules of strict providers, written apart from the code that is judged."""
    if messages and messages[0].role is not Role.USER:
        return False
    place = 0
    while place < len(messages):
        message = messages[place]
        if message.role not in (Role.USER, Role.ASSISTANT):
            return False
        if message.role is Role.USER and (message.tool_calls or not message.text.strip()):
            return False
        place += 1
        if message.role is not Role.ASSISTANT:
            continue
        if not message.tool_calls and not message.text.strip():
            return False
        wanted = [call.id for call in message.tool_calls]
        if any(not isinstance(json.loads(call.arguments), dict) for call in message.tool_calls):
            return False
        got = [answer.tool_call_id for answer in messages[place : place + len(wanted)] if answer.role is Role.TOOL]
        if len(set(wanted)) != len(wanted) or sorted(map(str, got)) != sorted(wanted):
            return False
        place += len(wanted)
    return True


ids = st.sampled_from(["a", "b", "c", ""])
calls = st.builds(
    ToolCall, id=ids, name=st.sampled_from(["look", ""]), arguments=st.sampled_from(["{}", "[1]", "{", "", "null"])
)
stored = st.builds(
    Message,
    role=st.sampled_from(Role),
    kind=st.sampled_from(Kind),
    content=st.none() | st.text(max_size=30) | st.just([{"type": "text", "text": "block"}]),
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    tool_call_id=st.none() | ids,
    tokens=st.integers(0, 60),
    marks=st.sampled_from([frozenset(), frozenset(), frozenset({Mark.DELETED})]),
)
histories = st.lists(stored, max_size=25).map(
    lambda rows: [replace(row, seq=seq) for seq, row in enumerate(rows, start=1)]
)
