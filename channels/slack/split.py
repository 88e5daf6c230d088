"""Cutting Markdown into parts without breaking it.

A cut is made between blocks where it can be; inside a block that is too long for one part between its lines, then
between words, then between characters a person would not see joined. A code fence that is too long is closed before a
cut and opened again after it. Packing is greedy, so a text that grows keeps its first parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from gateway.domain.text import last_cut

_PARSER = MarkdownIt("commonmark").enable("table")
_PARSER.core.ruler.enableOnly(["normalize", "block"])
LONGEST_MARK = 12


def units(text: str) -> int:
    """Return the length in UTF-16 units, the longest way a platform may count characters."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split_markdown(text: str, limit: int) -> list[str]:
    """Cut a text without NUL into parts of at most `limit` units, in order; blank parts are left out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if units(text) <= limit:
        return [text.strip("\n")] if text.strip() else []
    return [part for part in _pack(_pieces(text, limit), limit) if part.strip()]


def _pack(pieces: Iterator[str], limit: int) -> Iterator[str]:
    """Join pieces, each of which fits, into parts as long as the limit lets them be."""
    current = ""
    for piece in pieces:
        if current and units((current + piece).strip("\n")) > limit:
            yield current.strip("\n")
            current = ""
        current += piece
    yield current.strip("\n")


def _pieces(text: str, limit: int) -> Iterator[str]:
    """Yield the blocks of the text, those that are too long in pieces that fit."""
    tokens = _PARSER.parse(text)
    lines = [line + "\n" for line in text.split("\n")]
    fences = [_Fence.of(token) for token in tokens if token.type == "fence" and token.map]
    tables = {token.map[0] for token in tokens if token.type == "table_open" and token.level == 0 and token.map}
    starts = sorted({0, *(token.map[0] for token in tokens if token.level == 0 and token.map)})
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        block = "".join(lines[start:end])
        if units(block.strip("\n")) <= limit:
            yield block
        elif start in tables:
            yield from _table_pieces(lines[start:end], limit)
        else:
            yield from _block_pieces(lines, start, end, fences, limit)


@dataclass(frozen=True, slots=True)
class _Fence:
    start: int
    end: int
    markup: str
    info: str
    content: Sequence[str]

    @classmethod
    def of(cls, token: Token) -> _Fence:
        start, end = token.map or (0, 0)
        content = token.content.split("\n")
        return cls(start, end, token.markup, token.info, content[:-1] if content[-1] == "" else content)


def _block_pieces(lines: Sequence[str], start: int, end: int, fences: Sequence[_Fence], limit: int) -> Iterator[str]:
    """Yield a long block line by line, but each fence in it whole, or closed and opened again."""
    inside = {fence.start: fence for fence in fences if start <= fence.start < end}
    number = start
    while number < end:
        fence = inside.get(number)
        if fence is None:
            yield from _line_pieces(lines[number], limit)
            number += 1
            continue
        whole = "".join(lines[fence.start : fence.end])
        if units(whole.strip("\n")) <= limit:
            yield whole
        else:
            yield from _fence_pieces(lines[fence.start], fence, limit)
        number = max(fence.end, number + 1)


def _table_pieces(lines: Sequence[str], limit: int) -> Iterator[str]:
    """Yield a long table as several, each with the head, since rows without one are no table."""
    head = "".join(lines[:2])
    room = limit - units(head)
    if room < limit // 2:
        head, room = "", limit
    rows = (piece for line in lines[2 if head else 0 :] for piece in _line_pieces(line, room))
    for body in _packed_lines(rows, room):
        yield f"{head}{body}"


def _fence_pieces(opening: str, fence: _Fence, limit: int) -> Iterator[str]:
    """Yield a long fence as several; what stands before its mark, such as a list's bullet, comes once before it."""
    lead, info = opening.partition(fence.markup)[0], fence.info.strip()
    if lead.strip():
        yield from _line_pieces(lead.rstrip() + "\n", limit)
    mark = fence.markup if len(fence.markup) <= LONGEST_MARK else fence.markup[:3]
    if units(info) > limit // 4:
        yield from _line_pieces(f"{info}\n", limit)
        info = ""
    head, foot = f"{mark}{info}\n", f"{mark}\n"
    room = limit - units(head + foot)
    lines = (piece for line in fence.content for piece in _line_pieces(line + "\n", room, is_code=True))
    for body in _packed_lines(lines, room):
        yield f"{head}{body}{foot}"


def _packed_lines(pieces: Iterator[str], room: int) -> Iterator[str]:
    """Join pieces into bodies of at most `room` units and one line break at the end."""
    current = ""
    for piece in pieces:
        if current and units((current + piece).removesuffix("\n")) > room:
            yield current.removesuffix("\n") + "\n"
            current = ""
        current += piece
    if current:
        yield current.removesuffix("\n") + "\n"


def _line_pieces(line: str, limit: int, *, is_code: bool = False) -> Iterator[str]:
    """Yield a line in pieces that fit, cut after a space where there is one, or else between characters.

    Prose may lose spaces at a cut, since a part that begins with some would be read as code.
    """
    while units(line.removesuffix("\n")) > limit:
        cut = _cut(line, limit)
        yield line[:cut]
        line = line[cut:] if is_code else line[cut:].lstrip(" ")
    yield line


def _cut(line: str, limit: int) -> int:
    """Return where to cut: after the last space within `limit` units, else between the last two characters."""
    longest = limit if line[:limit].isascii() else _fitting(line, limit)
    space = line.rfind(" ", longest // 2, longest)
    return space + 1 if space > 0 else last_cut(line, longest // 2, longest)


def _fitting(line: str, limit: int) -> int:
    """Return how many leading characters fit `limit` units."""
    spent = 0
    for index, character in enumerate(line):
        spent += 2 if character > "\uffff" else 1
        if spent > limit:
            return index
    return len(line)
