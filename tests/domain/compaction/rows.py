"""Rows of a conversation with tools, as a session holds them, and helpers to write them down shortly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from gateway.domain.message import Kind, Mark, Message, Role, ToolCall


def letters(text: str) -> int:
    """Count a token a letter, so that budgets in tests are easy to see."""
    return len(text)


def numbered(rows: Sequence[Message], first: int = 1) -> list[Message]:
    return [replace(row, seq=seq) for seq, row in enumerate(rows, start=first)]


def user(text: str = "hi", tokens: int = 10, **fields: Any) -> Message:
    return Message(role=Role.USER, content=text, tokens=tokens, **fields)


def bot(text: str = "yes", tokens: int = 10, **fields: Any) -> Message:
    return Message(role=Role.ASSISTANT, content=text, tokens=tokens, **fields)


def call(id: str, name: str = "look", arguments: Mapping[str, Any] | str = "{}", tokens: int = 10) -> Message:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return bot("", tokens, tool_calls=(ToolCall(id=id, name=name, arguments=text),))


def result(id: str, text: str = "done", tokens: int = 10, **fields: Any) -> Message:
    return Message(role=Role.TOOL, content=text, tool_call_id=id, tokens=tokens, **fields)


_ids = st.sampled_from(["a", "b", "c"])
_names = st.sampled_from(["write_file", "run_shell", "publish_page", "look"])
_calls = st.builds(ToolCall, id=_ids, name=_names, arguments=st.sampled_from(["{}", "[1]", "{", '{"path": "a.txt"}']))
any_rows = st.lists(
    st.builds(
        Message,
        role=st.sampled_from([Role.USER, Role.ASSISTANT, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.SYSTEM]),
        kind=st.sampled_from([Kind.CHAT, Kind.CHAT, Kind.CHAT, Kind.CHAT, *Kind]),
        content=st.none() | st.text(max_size=12),
        tool_calls=st.lists(_calls, max_size=2).map(tuple),
        tool_call_id=st.none() | _ids,
        tokens=st.none() | st.integers(0, 40),
        marks=st.sampled_from([frozenset(), frozenset(), frozenset({Mark.DELETED}), frozenset({Mark.REFUSED})]),
    ),
    max_size=24,
).map(lambda rows: numbered(rows, 7))
