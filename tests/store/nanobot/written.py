"""What is written for nanobot, read by its rules stated again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from gateway.domain.keys import SessionKey
from gateway.domain.message import MediaRef, Message, Role
from gateway.domain.session import Session
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.nanobot.writer import NanobotFile, nanobot_file

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = Session(id="s1", key=SessionKey("slack", "D1"), created_at=NOON, updated_at=NOON)
ZONES = [UTC, timezone(-timedelta(hours=5)), timezone(timedelta(hours=5, minutes=45))]


def strictly_read(lines: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a file as nanobot does, by its rules stated again: a single fault and the file counts as corrupt."""
    values = [json.loads(line) for line in "".join(lines).split("\n") if line.strip()]
    head, rows = values[0], values[1:]
    assert head["_type"] == "metadata"
    assert isinstance(head["metadata"], dict)
    assert isinstance(head["key"], str)
    for row in rows:
        assert row.get("_type") != "metadata"
        assert isinstance(row["role"], str)
        assert row["content"] is None or isinstance(row["content"], str | list)
    for text in (head["created_at"], head["updated_at"], *(row["timestamp"] for row in rows)):
        assert datetime.fromisoformat(text).tzinfo is None
    assert type(head["last_consolidated"]) is int
    assert 0 <= head["last_consolidated"] <= len(rows)
    return head, rows


def rows_it_would_forget(rows: Sequence[Mapping[str, Any]]) -> int:
    """Count the rows nanobot drops because a tool's result further on has no call before it."""
    start, declared = 0, set()
    for place, row in enumerate(rows):
        if row["role"] == "assistant":
            declared |= {str(call["id"]) for call in row.get("tool_calls") or [] if call.get("id")}
        if row["role"] == "tool" and row.get("tool_call_id") and str(row["tool_call_id"]) not in declared:
            start, declared = place + 1, set()
    return start


def without_context(row: Mapping[str, Any]) -> Any:
    """Take the runtime context off a row's content, as nanobot does before people see it."""
    content, marker = row["content"], row.get("_runtime_context")
    if not isinstance(marker, dict) or marker.get("version") != 1:
        return content
    if isinstance(content, str):
        suffix = marker["suffix"]
        return "" if content == suffix else content.removesuffix(f"\n\n{suffix}")
    count = len(marker["blocks"])
    return content[:-count] if content[-count:] == marker["blocks"] else content


def path_of(file: MediaRef) -> str | None:
    return f"/kept/{file.name}" if file.ref else None


def exported(*rows: Message, session: Session = HEADER, attic: Sequence[Retired] = ()) -> NanobotFile:
    copy = SessionCopy(session=session, rows=rows, attic=attic)
    return nanobot_file(copy, zone=UTC, path_of=path_of)


def read_rows(*rows: Message) -> list[dict[str, Any]]:
    return strictly_read(exported(*rows).lines)[1]


def row(seq: int = 1, **fields: Any) -> Message:
    return Message(**{"role": Role.USER, "content": "hi", "seq": seq, "created_at": NOON, **fields})
