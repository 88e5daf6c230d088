"""nanobot's tool calls, as OpenAI's chat API has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gateway.domain.message import ToolCall

_OUTER = frozenset({"id", "type", "function"})
_INNER = frozenset({"name", "arguments"})


def read_calls(value: Any) -> tuple[tuple[ToolCall, ...], list[Any]]:
    """Return the calls of a row, and as they came those that say more than a call here can, or less than it must.

    A call that says more is among both.
    """
    calls: list[ToolCall] = []
    odd: list[Any] = []
    for raw in value if isinstance(value, list) else [value]:
        call = _call(raw)
        calls += [] if call is None else [call]
        odd += [raw] if call is None or _says_more(raw) else []
    return tuple(calls), odd


def _call(raw: Any) -> ToolCall | None:
    function = raw.get("function") if isinstance(raw, Mapping) else None
    if not isinstance(function, Mapping):
        return None
    id, name = raw.get("id"), function.get("name")
    if not (isinstance(id, str) and id and isinstance(name, str) and name):
        return None
    return ToolCall(id=id, name=name, arguments=_arguments(function.get("arguments")))


def _arguments(value: Any) -> str:
    if value is None:
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _says_more(raw: Mapping[str, Any]) -> bool:
    return bool(raw.keys() - _OUTER or raw["function"].keys() - _INNER) or raw.get("type", "function") != "function"
