"""A transcript row to and from its columns.

What queries select by has a column; the rest of a row, when there is any, is one JSON object in `body`. A body that
cannot be read costs what it held, never the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gateway.domain.message import (
    PICTURE_TOKENS,
    SCHEMA_VERSION,
    TOKENS_PER_MESSAGE,
    Kind,
    Mark,
    MediaRef,
    Message,
    Role,
    ToolCall,
    countable_text,
    pictures_in,
)
from gateway.domain.text import whole
from gateway.ports.tokens import TokenCounter
from gateway.store import damage
from gateway.store.codec import ATTACHMENTS, MEDIA, SENDER, from_json, from_micros, parsed, to_json, to_micros
from gateway.store.database import Row, Transaction

_ROLES = {role.value: role for role in Role}
_KINDS = {kind.value: kind for kind in Kind}
_LATEST = 1 << 57
"""A time in microseconds that is well within what a `datetime` holds."""

_PLAIN = ("tool_call_id", "name", "reasoning_content", "provider", "model", "runtime_context")

COLUMNS = (
    "session_id", "seq", "v", "role", "kind", "content", "body", "turn_id", "event_id", "tokens", "created_at",
)  # fmt: skip
"""The columns of a row, in the order `decode_values` takes them."""

_INSERT = """
INSERT INTO messages (session_id, seq, v, role, kind, content, body, turn_id, event_id, tokens, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def counted(message: Message, count: TokenCounter) -> Message:
    """Return the row with its token count, which is made once, here."""
    if message.tokens is not None:
        return message
    tokens = count(countable_text(message)) + TOKENS_PER_MESSAGE + PICTURE_TOKENS * pictures_in(message)
    return replace(message, tokens=tokens)


def insert(tx: Transaction, session_id: str, row: Message, seq: int, now: datetime) -> None:
    """Insert a row at a place."""
    tx.execute(_INSERT, session_id, seq, *columns(row, now))


def keep_media(tx: Transaction, session_id: str, seq: int, media: Sequence[MediaRef]) -> None:
    """Replace where the files of a row are; what a damaged row holds is left alone."""
    row = tx.one("SELECT body FROM messages WHERE session_id = ? AND seq = ?", session_id, seq)
    body = from_json(row["body"], {}, "row", f"{session_id}#{seq}") if row else {}
    if body.get("media"):
        text = to_json({**body, "media": MEDIA.dump_python(tuple(media), exclude_defaults=True)})
        tx.execute("UPDATE messages SET body = ? WHERE session_id = ? AND seq = ?", text, session_id, seq)
        # Whoever keeps the row worked out has it with the old addresses.
        tx.execute("UPDATE sessions SET revision = revision + 1 WHERE id = ?", session_id)


def decode(row: Row, marks: frozenset[Mark] = frozenset()) -> Message:
    """Return the message a stored row holds."""
    return decode_values([row[name] for name in COLUMNS], marks)


def decode_values(values: Sequence[Any], marks: frozenset[Mark] = frozenset()) -> Message:
    """Return the message that the values of `COLUMNS` hold; what a replay does thousands of times.

    A field that is damaged costs itself; an unknown role or kind, as a newer release may write, makes the row a notice,
    which people see and no model is sent.
    """
    session_id, seq, v, role_name, kind_name, content, body, turn_id, event_id, tokens, created_at = values
    role, kind = _ROLES.get(role_name), _KINDS.get(kind_name)
    # Most rows hold little in their body: only what is there is looked at.
    more = {} if body is None else _from_body(body, session_id, seq)
    if content is not None and not isinstance(content, str):
        content = _mended(content, session_id, seq)
    return Message(
        role=role or Role.SYSTEM,
        kind=kind if role and kind else Kind.NOTICE,
        content=more.pop("content", content),
        seq=seq,
        v=v if isinstance(v, int) else SCHEMA_VERSION,
        turn_id=turn_id,
        event_id=event_id,
        created_at=_moment(created_at, session_id, seq),
        tokens=tokens if isinstance(tokens, int) else None,
        marks=marks,
        **more,
    )


def _from_body(body: str, session_id: str, seq: int) -> dict[str, Any]:
    stored = from_json(body, {}, "row", f"{session_id}#{seq}")
    found = {name: read(value) for name, value in stored.items() if (read := _READERS.get(name)) is not None}
    return {name: value for name, value in found.items() if value is not None}


def _mended(content: object, session_id: str, seq: int) -> str:
    damage.tell("text", f"{session_id}#{seq}")
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)


def _moment(micros: Any, session_id: str, seq: int) -> datetime:
    is_moment = isinstance(micros, int) and 0 <= micros < _LATEST
    return from_micros(micros, "" if is_moment else f"{session_id}#{seq}")


def _text(stored: object) -> str | None:
    return stored if isinstance(stored, str) else None


def _blocks(stored: object) -> list[dict[str, Any]] | None:
    return [block for block in stored if isinstance(block, dict)] if isinstance(stored, list) else None


def _thinking(stored: object) -> tuple[dict[str, Any], ...]:
    return tuple(_blocks(stored) or ())


def _object(stored: object) -> dict[str, Any] | None:
    return stored if isinstance(stored, dict) else None


def _tool_calls(stored: object) -> tuple[ToolCall, ...]:
    calls = stored if isinstance(stored, list) else ()
    return tuple(
        ToolCall(id=call[0], name=call[1], arguments=call[2])
        for call in calls
        if isinstance(call, list) and len(call) == 3 and all(isinstance(field, str) for field in call)
    )


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "content": _blocks,
    "tool_calls": _tool_calls,
    "thinking_blocks": _thinking,
    "sender": lambda stored: parsed(SENDER, stored),
    "media": lambda stored: parsed(MEDIA, stored),
    "attachments": lambda stored: parsed(ATTACHMENTS, stored),
    "extra": _object,
    **dict.fromkeys(_PLAIN, _text),
}
"""How each part of a body is read; None leaves the field at its default."""


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
