"""A transcript row to and from its columns.

What queries select by has a column; the rest of a row, when there is any, is one JSON object in `body`. A body that
cannot be read costs what it held, never the row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from gateway.domain.message import (
    TOKENS_PER_MESSAGE,
    Content,
    Kind,
    Mark,
    Message,
    Role,
    ToolCall,
    countable_text,
)
from gateway.domain.text import whole
from gateway.ports.tokens import TokenCounter
from gateway.store.codec import ATTACHMENTS, MEDIA, SENDER, from_json, from_micros, parsed, to_json, to_micros
from gateway.store.database import Row, Transaction

E = TypeVar("E", bound=StrEnum)

_PLAIN = ("tool_call_id", "name", "reasoning_content", "provider", "model", "runtime_context")

_INSERT = """
INSERT INTO messages (session_id, seq, v, role, kind, content, body, turn_id, event_id, tokens, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def counted(message: Message, count: TokenCounter) -> Message:
    """Return the row with its token count, which is made once, here."""
    if message.tokens is not None:
        return message
    return replace(message, tokens=count(countable_text(message)) + TOKENS_PER_MESSAGE)


async def count_off_the_loop(
    messages: Sequence[Message], count: TokenCounter, turn_id: str | None = None
) -> Sequence[Message]:
    """Count tokens in a thread: the vocabulary takes a third of a second to load, a long text as long to count."""
    if not messages:
        return ()
    return await asyncio.to_thread(lambda: [replace(counted(row, count), turn_id=turn_id) for row in messages])


def insert(tx: Transaction, session_id: str, row: Message, seq: int, now: datetime) -> None:
    """Insert a row at a place."""
    tx.execute(_INSERT, session_id, seq, *columns(row, now))


def decode(row: Row, marks: frozenset[Mark] = frozenset()) -> Message:
    """Return the message a stored row holds.

    A field that is damaged costs itself; an unknown role or kind, as a newer release may write, makes the row a notice,
    which people see and no model is sent.
    """
    stored = row["body"]
    body = {} if stored is None else from_json(stored, {}, "row", f"{row['session_id']}#{row['seq']}")
    role, kind = _known(Role, row["role"]), _known(Kind, row["kind"])
    return Message(
        role=role or Role.SYSTEM,
        kind=kind if role and kind else Kind.NOTICE,
        content=_content(body, row["content"]),
        tool_calls=_tool_calls(body.get("tool_calls")),
        thinking_blocks=tuple(block for block in _list(body.get("thinking_blocks")) if isinstance(block, dict)),
        sender=parsed(SENDER, body.get("sender")),
        media=parsed(MEDIA, body.get("media")) or (),
        attachments=parsed(ATTACHMENTS, body.get("attachments")) or (),
        extra=extra if isinstance(extra := body.get("extra"), dict) else {},
        seq=row["seq"],
        v=row["v"],
        turn_id=row["turn_id"],
        event_id=row["event_id"],
        created_at=from_micros(row["created_at"], f"{row['session_id']}#{row['seq']}"),
        tokens=row["tokens"] if isinstance(row["tokens"], int) else None,
        marks=marks,
        **{field: value if isinstance(value := body.get(field), str) else None for field in _PLAIN},
    )


def _known(enum: type[E], value: object) -> E | None:
    return enum(value) if value in [member.value for member in enum] else None


def _content(body: Mapping[str, Any], text: str | None) -> Content:
    blocks = body.get("content")
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else text


def _tool_calls(stored: object) -> tuple[ToolCall, ...]:
    fields = [call for call in _list(stored) if isinstance(call, list) and len(call) == 3]
    return tuple(
        ToolCall(id=id, name=name, arguments=arguments)
        for id, name, arguments in fields
        if isinstance(id, str) and isinstance(name, str) and isinstance(arguments, str)
    )


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def columns(row: Message, now: datetime) -> tuple[Any, ...]:
    """Return a counted row as the columns after its place hold it."""
    text = None if row.content is None else whole(row.text)
    body = _body(row)
    created_at = to_micros(row.created_at or now)
    assert row.tokens is not None
    values = (row.v, row.role, row.kind, text, to_json(body) if body else None, row.turn_id, row.event_id)
    return (*values, row.tokens, created_at)


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
    if row.attachments:
        body["attachments"] = ATTACHMENTS.dump_python(row.attachments, exclude_defaults=True)
    if row.extra:
        body["extra"] = dict(row.extra)
    return body
