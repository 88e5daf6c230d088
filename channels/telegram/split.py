"""Cuts a formatted text into messages of a size that Telegram takes.

Greedy from the front, so that a text which grows keeps its earlier parts: at the last line break that fits, else at the
last space, else between two characters as a person sees them. Lengths and entities count UTF-16 units.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from gateway.domain.text import last_cut

Entity = Mapping[str, Any]
Piece = tuple[str, list[Entity]]

LONGEST = 4096
"""The most UTF-16 units of one message."""
MOST_ENTITIES = 100

_LINKS = ("text_link", "pre")


def split(text: str, entities: Sequence[Entity], longest: int = LONGEST) -> Iterator[Piece]:
    """Yield the text in pieces of at most `longest` units, none blank; white space at a cut is left out."""
    offsets = [0, *accumulate(1 + (character > "\uffff") for character in text)]
    start = 0
    while start < len(text):
        end = _cut(text, start, bisect_right(offsets, offsets[start] + longest) - 1)
        first, last = _trim(text, start, end)
        if first < last:
            yield text[first:last], _within(entities, offsets[first], offsets[last])
        start = end


def _cut(text: str, start: int, limit: int) -> int:
    """Return where a piece that starts at `start` and may reach to `limit` ends."""
    if limit == len(text):
        return limit
    for mark in ("\n", " "):
        # A break just past the limit costs nothing, since white space at a cut is left out.
        if (found := text.rfind(mark, start, limit + 1)) > start and not text[start:found].isspace():
            return found
    return last_cut(text, start, limit)


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out white space at both ends of a piece, but keep the indentation of its first line."""
    while end > start and text[end - 1].isspace():
        end -= 1
    first = start
    while first < end and text[first].isspace():
        first += 1
    line = text.rfind("\n", start, first) + 1
    return line or (first if start else 0), end


def _within(entities: Sequence[Entity], start: int, end: int) -> list[Entity]:
    """Return the entities of a piece, clipped to it and counted from its start."""
    inside: list[Entity] = [
        {**entity, "offset": first - start, "length": last - first}
        for entity in entities
        if (first := max(entity["offset"], start)) < (last := min(entity["offset"] + entity["length"], end))
    ]
    if len(inside) <= MOST_ENTITIES:
        return inside
    # Telegram takes no more; a link carries words of its own, bold type only emphasis.
    kept = sorted(inside, key=lambda entity: entity["type"] not in _LINKS)[:MOST_ENTITIES]
    return [entity for entity in inside if any(entity is one for one in kept)]
