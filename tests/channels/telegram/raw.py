"""Updates as Telegram writes them, for the tests of how they are read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from channels.telegram.events import read
from channels.telegram.words import Me
from gateway.domain.inbound import Inbound

ME = Me(id=99, username="tbot")
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SENT = 1_796_000_000
JANE = {"id": 42, "is_bot": False, "first_name": "Jane", "last_name": "Doe", "username": "jane"}
PRIVATE = {"id": 42, "type": "private", "first_name": "Jane", "last_name": "Doe", "username": "jane"}
GROUP = {"id": -100, "type": "supergroup", "title": "Team"}


def message(chat: dict[str, Any] = PRIVATE, **fields: Any) -> dict[str, Any]:
    return {"message_id": 5, "date": SENT, "chat": chat, "from": JANE, **fields}


def update(**kinds: Any) -> dict[str, Any]:
    return {"update_id": 7, **kinds}


def taken(raw: dict[str, Any]) -> Inbound:
    inbound = read(raw, "tg", ME, NOW)
    assert isinstance(inbound, Inbound)
    return inbound


def in_group(text: str, *entities: dict[str, Any], **fields: Any) -> Inbound:
    return taken(update(message=message(GROUP, text=text, entities=list(entities), **fields)))


def entity(type: str, text: str, part: str, **fields: Any) -> dict[str, Any]:
    before = text[: text.index(part)]
    return {"type": type, "offset": utf16(before), "length": utf16(part), **fields}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
