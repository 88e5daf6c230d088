"""One record as the text that is written: redacted as a whole, after everything in it was put together."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Mapping
from datetime import UTC
from typing import TYPE_CHECKING

from gateway.domain.redaction import redact
from gateway.domain.text import visible

if TYPE_CHECKING:
    from loguru import Record

Render = Callable[["Record", Collection[str]], str]
"""How a record becomes a line."""

FIRST = ("session", "turn", "channel", "message")
"""What a line is about comes before anything else that was bound to it."""


def render(record: Record, secrets: Collection[str]) -> str:
    """Return a record with what was bound to it and its exception, without any secret, ending in a line break."""
    when = record["time"].astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    head = f"{when}Z {record['level'].name:<8} {record['name']}: {record['message']}{bound(record['extra'])}\n"
    return visible(redact(head + _exception(record), secrets))


def render_brief(record: Record, secrets: Collection[str]) -> str:
    """Return what happened, and the error if there was one, for a person in the middle of a chat."""
    error = record["extra"].get("error") or (record["exception"] and record["exception"].type)
    cause = f": {getattr(error, '__name__', error)}" if error else ""
    return visible(redact(f"({record['message']}{cause})\n", secrets))


def bound(extra: Mapping[str, object]) -> str:
    """Return bound data as ` key=value` pairs, the ids of the conversation first."""
    names = [name for name in FIRST if name in extra] + [name for name in extra if name not in FIRST]
    names = [name for name in names if extra[name] is not None]
    return "".join(f" {name}={_value(extra[name])}" for name in names)


def _value(value: object) -> str:
    text = str(value)
    return repr(text) if not text or any(character.isspace() for character in text) else text


def _exception(record: Record) -> str:
    # The standard library's traceback shows lines of code and never the values of variables.
    raised = record["exception"]
    if raised is None or raised.type is None:
        return ""
    return "".join(traceback.format_exception(raised.type, raised.value, raised.traceback))
