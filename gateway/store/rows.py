"""A transcript row to and from its columns.

What queries select by has a column; the rest of a row, when there is any, is one JSON object in `body`. A body that
cannot be read costs what it held, never the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gateway.domain.message import (
    TOKENS_PER_MESSAGE,
    Kind,
    Mark,
    Message,
    Role,
    ToolCall,
    countable_text,
)
from gateway.ports.tokens import TokenCounter
from gateway.store.codec import MEDIA, SENDER, from_json, from_micros, to_json, to_micros
from gateway.store.database import Row, Transaction

_PLAIN = ("tool_call_id", "name", "reasoning_content", "provider", "model", "runtime_context")

_INSERT = """
INSERT INTO messages (session_id, seq, v, role, kind, content, body, turn_id, event_id, tokens, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def with_tokens(message: Message, count: TokenCounter) -> Message:
    """Return the row with its token count, which is made once, here."""
    if message.tokens is not None:
        return message
    return replace(message, tokens=count(countable_text(message)) + TOKENS_PER_MESSAGE)


def insert(tx: Transaction, session_id: str, row: Message, now: datetime) -> None:
    """Insert a row at the place it names."""
    tx.execute(_INSERT, session_id, *_columns(row, now))


def decode(row: Row, marks: frozenset[Mark] = frozenset()) -> Message:
    """Return the message a stored row holds."""
    body = from_json(row["body"], {})
    return Message(
        role=Role(row["role"]),
        kind=Kind(row["kind"]),
        content=body["content"] if "content" in body else row["content"],
        tool_calls=tuple(_tool_call(call) for call in body.get("tool_calls", ())),
        thinking_blocks=tuple(body.get("thinking_blocks", ())),
        sender=SENDER.validate_python(body["sender"]) if "sender" in body else None,
        media=MEDIA.validate_python(body["media"]) if "media" in body else (),
        extra=body.get("extra", {}),
        seq=row["seq"],
        v=row["v"],
        turn_id=row["turn_id"],
        event_id=row["event_id"],
        created_at=from_micros(row["created_at"]),
        tokens=row["tokens"],
        marks=marks,
        **{field: body.get(field) for field in _PLAIN},
    )


def _columns(row: Message, now: datetime) -> tuple[Any, ...]:
    text = row.content if isinstance(row.content, str) else None
    body = _body(row)
    created_at = to_micros(row.created_at or now)
    assert row.tokens is not None
    columns = (row.seq, row.v, row.role, row.kind, text, to_json(body) if body else None, row.turn_id, row.event_id)
    return (*columns, row.tokens, created_at)


def _body(row: Message) -> dict[str, Any]:
    body: dict[str, Any] = {field: value for field in _PLAIN if (value := getattr(row, field)) is not None}
    if row.content is not None and not isinstance(row.content, str):
        body["content"] = [dict(block) for block in row.content]
    if row.tool_calls:
        body["tool_calls"] = [[call.id, call.name, call.arguments] for call in row.tool_calls]
    if row.thinking_blocks:
        body["thinking_blocks"] = [dict(block) for block in row.thinking_blocks]
    if row.sender is not None:
        body["sender"] = SENDER.dump_python(row.sender, exclude_defaults=True)
    if row.media:
        body["media"] = MEDIA.dump_python(row.media, exclude_defaults=True)
    if row.extra:
        body["extra"] = dict(row.extra)
    return body


def _tool_call(fields: Sequence[str]) -> ToolCall:
    id, name, arguments = fields
    return ToolCall(id=id, name=name, arguments=arguments)
