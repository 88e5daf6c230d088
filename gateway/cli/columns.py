"""Cells and columns, measured by what a terminal makes of each character.

What is in a cell may come from a chat, so whatever could drive a terminal or break a line is written as an escape.
There is no colour: what is printed is the same everywhere, and only a terminal's width shortens it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence

from gateway.domain.text import is_inside_character, one_line

LONGEST_CELL = 300
WIDEST_CELL = 24
"""How wide a column other than the last may be on a terminal of 96 columns or more; on less, a quarter of it."""
NARROWEST_CELL = 16
"""What such a column always has: a moment, the key of most chats."""
NARROWEST = 12
"""How narrow a column becomes before others are left out for it."""
GAP = "  "


def cell(text: str) -> str:
    """Return text as one safe line of a bounded length."""
    line = one_line(text[: LONGEST_CELL * 4])
    return line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 1] + "…"


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(_width(character) for character in _characters(text))


def clipped(text: str, most: int) -> str:
    """Return a text of at most so many columns, cut between characters and with a sign that it was."""
    if width(text) <= most:
        return text
    kept, taken = "", 1
    for character in _characters(text):
        taken += _width(character)
        if taken > most:
            break
        kept += character
    return kept.rstrip() + "…"


def table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    columns: int | None,
    numbers: Collection[str] = (),
    spare: Iterable[str] = (),
) -> list[str]:
    """Return aligned lines, headings first.

    Within `columns`, where there is a terminal, the columns in `spare` are left out one after another until the rest
    has room, and then the last column gives way.
    """
    lines = [list(headings), *([cell(text) for text in row] for row in rows)]
    widths = _widths(lines)
    if columns is not None:
        lines, widths = _fitted(lines, columns, spare)
    right = [heading in numbers for heading in lines[0]]
    return [GAP.join(map(_padded, line, widths, right)).rstrip() for line in lines]


def _fitted(lines: list[list[str]], columns: int, spare: Iterable[str]) -> tuple[list[list[str]], list[int]]:
    """Return a table cut to a terminal's width, and how wide each of its columns is then."""
    widest = max(NARROWEST_CELL, min(WIDEST_CELL, columns // 4))
    lines = [[clipped(text, widest) for text in line[:-1]] + line[-1:] for line in lines]
    for heading in spare:
        widths = _widths(lines)
        if _taken([*widths[:-1], min(widths[-1], NARROWEST)]) <= columns:
            break
        if heading in lines[0]:
            place = lines[0].index(heading)
            lines = [line[:place] + line[place + 1 :] for line in lines]
    widths = _widths(lines)
    # The last one gives way, and where that is not enough the widest of the others.
    for place in (len(widths) - 1, widths.index(max(widths[:-1]))):
        widths[place] = min(widths[place], max(NARROWEST, widths[place] - _taken(widths) + columns))
    return [list(map(clipped, line, widths)) for line in lines], widths


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(width, column)) for column in zip(*lines, strict=True)]


def _taken(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _padded(text: str, wanted: int, is_number: bool) -> str:
    padding = " " * (wanted - width(text))
    return padding + text if is_number else text + padding


def _characters(text: str) -> Iterator[str]:
    """Yield what a person sees as one character each."""
    start = 0
    for cut in range(1, len(text) + 1):
        if not is_inside_character(text, cut):
            yield text[start:cut]
            start = cut


def _width(character: str) -> int:
    is_flag = len(character) == 2 and all("\U0001f1e6" <= half <= "\U0001f1ff" for half in character)
    # The selector asks for the picture of a sign that has one of a letter's width too.
    if is_flag or "\ufe0f" in character or any(unicodedata.east_asian_width(part) in "WF" for part in character):
        return 2
    return sum(unicodedata.category(part) not in ("Mn", "Me", "Cf") for part in character)
