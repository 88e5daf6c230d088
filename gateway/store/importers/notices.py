"""Rows of which nothing is known but that they are there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from gateway.domain.message import Kind, Message, Role


def unknown_row(raw: Mapping[str, Any], seq: int, created_at: datetime | None) -> Message:
    """Return a row that people may look at and no model is sent, with all that it came with."""
    content = raw.get("content")
    return Message(
        role=Role.SYSTEM,
        kind=Kind.NOTICE,
        content=content if isinstance(content, str) else None,
        created_at=created_at,
        seq=seq,
        extra={"raw": dict(raw)},
    )
