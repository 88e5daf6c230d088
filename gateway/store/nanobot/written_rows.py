"""A row as nanobot stores one: OpenAI's shape, with its own facts beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Any

from gateway.domain.message import Attachment, Kind, MediaRef, Message, Role, ToolCall
from gateway.store.nanobot.names import (
    ANNOUNCEMENT,
    APP_ENTRY,
    APP_NAME,
    APP_SKILL,
    APPS,
    BLANK_LINE,
    CLI_APP,
    COMMAND,
    CONTEXT,
    CONTEXT_VERSION,
    DELIVERY,
    EVENT,
    HIDDEN_HISTORY,
    SUBAGENT_RESULT,
)

_APP_FACTS = (APP_ENTRY, APP_SKILL)
_READ_AGAIN = frozenset({CONTEXT, ANNOUNCEMENT, "role"})
"""Names of what an import notes besides a row's fields, and that an export writes in their place."""
_TAKEN = _READ_AGAIN | {
    "_type", "content", "timestamp", "tool_calls", "tool_call_id", "name", "reasoning_content", "thinking_blocks",
    "media", APPS, COMMAND, DELIVERY, "sender_id",
}  # fmt: skip
"""Names that are written from fields of a row, or that nanobot would take for something else."""


def stored_row(row: Message, zone: tzinfo, path_of: Callable[[MediaRef], str | None]) -> dict[str, Any]:
    """Return the row as nanobot stores it; a file without a path is left out."""
    content, marker = _with_context(row)
    paths = [path for file in row.media if (path := path_of(file))]
    facts = {
        "timestamp": naive(row.created_at, zone) if row.created_at else None,
        "tool_calls": [_call(call) for call in row.tool_calls],
        "tool_call_id": row.tool_call_id,
        "name": row.name,
        "reasoning_content": row.reasoning_content,
        "thinking_blocks": [dict(block) for block in row.thinking_blocks],
        "media": paths,
        APPS: [_app(one) for one in row.attachments if one.kind == CLI_APP],
        COMMAND: row.kind is Kind.COMMAND,
        DELIVERY: row.kind is Kind.DELIVERY,
        CONTEXT: marker,
        "sender_id": (row.sender.id or None) if row.sender else None,
        EVENT: _event(row),
    }
    # nanobot looks at whether a name is there, not only at what it holds.
    given = {name: value for name, value in facts.items() if value not in (None, False, [])}
    return {"role": _role(row), "content": content, **given, **carried(row.extra)}


def carried(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else is known of a row and goes by a name that is free in nanobot."""
    return {name: value for name, value in extra.items() if name not in _TAKEN}


def lost_names(extra: Mapping[str, Any]) -> list[str]:
    """Return the names of what else is known of a row and cannot be taken along."""
    return [name for name in extra if name in _TAKEN - _READ_AGAIN]


def naive(moment: datetime, zone: tzinfo) -> str:
    """Return a moment as nanobot writes it: the local time, without its zone."""
    try:
        return moment.astimezone(zone).replace(tzinfo=None).isoformat()
    except OverflowError:
        return moment.replace(tzinfo=None).isoformat()


def _with_context(row: Message) -> tuple[str | Sequence[Mapping[str, Any]] | None, Mapping[str, Any] | None]:
    """Return the content with the runtime context at its end, and the marker by which nanobot takes it off again."""
    context = row.runtime_context
    if not context:
        return row.content, None
    if row.content is None or isinstance(row.content, str):
        text = f"{row.content}{BLANK_LINE}{context}" if row.content else context
        return text, {**_marker(row), "suffix": context}
    blocks = [{"type": "text", "text": context}]
    return [*row.content, *blocks], {**_marker(row), "blocks": blocks}


def _marker(row: Message) -> dict[str, Any]:
    noted = row.extra.get(CONTEXT)
    return {"version": CONTEXT_VERSION, "sources": [], **(noted if isinstance(noted, Mapping) else {})}


def _role(row: Message) -> str:
    """Return the role, which for an announcement may have been another in nanobot than it is here."""
    noted = row.extra.get("role") if row.kind is Kind.ANNOUNCEMENT else None
    return noted if noted in [role.value for role in Role] else row.role.value


def _event(row: Message) -> str | None:
    is_known_so = HIDDEN_HISTORY in row.extra and row.role is Role.USER
    return SUBAGENT_RESULT if row.kind is Kind.ANNOUNCEMENT and not is_known_so else None


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _app(app: Attachment) -> dict[str, str]:
    return {APP_NAME: app.name, **{name: app.details[name] for name in _APP_FACTS if name in app.details}}
