"""Tool calls as OpenAI's chat API has them, and as they are without the `function` around a name and arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gateway.domain.message import ToolCall

_WRAPPED = frozenset({"id", "type", "function"})
_INNER = frozenset({"name", "arguments"})
_FLAT = frozenset({"id", "type"}) | _INNER


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
    if not isinstance(raw, Mapping):
        return None
    inner = _inner(raw)
    id, name = raw.get("id"), inner.get("name")
    if not (isinstance(id, str) and id and isinstance(name, str) and name):
        return None
    return ToolCall(id=id, name=name, arguments=_arguments(inner.get("arguments")))


def _inner(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    function = raw.get("function")
    return function if isinstance(function, Mapping) else raw


def _arguments(value: Any) -> str:
    if value is None:
        return "{}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _says_more(raw: Mapping[str, Any]) -> bool:
    inner = _inner(raw)
    is_more = raw.keys() - _FLAT if inner is raw else raw.keys() - _WRAPPED or inner.keys() - _INNER
    return bool(is_more) or raw.get("type", "function") != "function"
