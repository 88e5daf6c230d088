"""What Telegram refuses, in the words it refuses it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

LONGEST = 4096
MOST_ENTITIES = 100
KNOWN_ENTITIES = {
    "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link", "blockquote",
    "expandable_blockquote",
}  # fmt: skip


class Refusal(Exception):
    """An answer that says no."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters

    def body(self) -> dict[str, Any]:
        """Return it as the Bot API writes it."""
        body: dict[str, Any] = {"ok": False, "error_code": self.code, "description": self.description}
        return {**body, "parameters": self.parameters} if self.parameters else body


def bad_request(why: str) -> Refusal:
    """Return a refusal with status 400."""
    return Refusal(400, f"Bad Request: {why}")


def utf16_length(text: str) -> int:
    """Return the length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def check_text(text: str) -> None:
    """Refuse a text that is empty or too long."""
    if not text.strip():
        raise bad_request("message text is empty")
    if utf16_length(text) > LONGEST:
        raise bad_request("message is too long")


def check_entities(text: str, entities: Sequence[Mapping[str, Any]]) -> None:
    """Refuse entities that lie outside the text, cut a surrogate pair, or overlap in part."""
    if len(entities) > MOST_ENTITIES:
        raise bad_request("can't parse entities: too many entities")
    edges = _edges(text)
    for entity in entities:
        start, end = entity["offset"], entity["offset"] + entity["length"]
        if entity["type"] not in KNOWN_ENTITIES:
            raise bad_request(f"can't parse entities: unsupported type {entity['type']!r}")
        if entity["length"] <= 0 or not {start, end} <= edges:
            raise bad_request(
                f"can't parse entities: entity at UTF-16 offset {start} is out of the text or cuts a symbol"
            )
    for one, other in combinations(entities, 2):
        if _overlap_in_part(one, other):
            raise bad_request("can't parse entities: entities overlap")


def _edges(text: str) -> set[int]:
    edges, at = {0}, 0
    for character in text:
        at += utf16_length(character)
        edges.add(at)
    return edges


def _overlap_in_part(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    first, second = sorted((one, other), key=lambda entity: (entity["offset"], -entity["length"]))
    end = first["offset"] + first["length"]
    return second["offset"] < end < second["offset"] + second["length"]
