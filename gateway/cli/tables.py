"""How sessions and rows are shown: lines of plain text for people, plain data for programs.

Titles and rows come from chats, so whatever could drive a terminal or break a line is written as an escape, and columns
are aligned by what a terminal makes of each character. There is no colour: what is printed is the same everywhere, and
only a terminal's width shortens it.
"""

from __future__ import annotations

import json
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

import typer

from gateway.domain.announce import scrubbed
from gateway.domain.errors import Unavailable
from gateway.domain.keys import SessionKey
from gateway.domain.message import Kind, Message
from gateway.domain.session import Session
from gateway.domain.text import is_inside_character, visible, whole
from gateway.ports.sessions import Found

HEADER = (
    "id", "key", "workspace", "agent", "model", "mode", "title", "title_edited", "preview", "message_count",
    "created_at", "updated_at", "closed_at", "extra_roots", "grants", "pinned", "archived", "origin", "origin_label",
    "parent_id", "consolidated_through", "replay_from", "compaction", "metadata",
)  # fmt: skip
"""The fields of a session as a program is given them, in this order."""

LONGEST_CELL = 300
WIDEST_CELL = 24
"""How wide a column other than the last may be on a terminal of 96 columns or more; on less, a quarter of it."""
NARROWEST_CELL = 16
"""What such a column always has: a moment, the key of most chats."""
NARROWEST = 12
"""How narrow a column becomes before others are left out for it."""
WIDEST_TITLE = 40
"""How much of a title is shown beside what a search found."""
ROOM_FOR_ORIGINS = 110
"""How wide a terminal must be for the column that says where a session came from; its key says more."""
SHORT_ID = 8
GAP = "  "

_REORDERING = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)}
"""What makes a terminal show a line in another order than it was written in, or end it."""


def safe(text: str) -> str:
    """Return text of several lines as one that does nothing to a terminal but appear."""
    return visible(whole(text)).translate(_REORDERING)


def cell(text: str) -> str:
    """Return text as one safe line of a bounded length."""
    line = " ".join(text[: LONGEST_CELL * 4].split())
    return safe(line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 1] + "…")


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


def session_lines(sessions: Sequence[Session], columns: int | None) -> list[str]:
    """Return a list of sessions as a table."""
    ids = short_ids([session.id for session in sessions])
    shown = {
        "ID": [ids[session.id] for session in sessions],
        "UPDATED": [moment(session.updated_at) for session in sessions],
        "ROWS": [str(session.message_count) for session in sessions],
        "STATE": [state(session) for session in sessions],
        "KEY": [str(session.key) for session in sessions],
        "FROM": [place(session) for session in sessions],
        "TITLE": [name(session) for session in sessions],
    }
    if columns is not None and columns < ROOM_FOR_ORIGINS:
        del shown["FROM"]
    spare = ("FROM", "ROWS", "STATE", "KEY", "UPDATED")
    return table(tuple(shown), zip(*shown.values(), strict=True), columns=columns, numbers=("ROWS",), spare=spare)


def found_lines(found: Sequence[Found], columns: int | None) -> list[str]:
    """Return what a search found as a table; a `#` is the number of a row, and without it the title matched."""
    ids = short_ids([one.session.id for one in found])
    rows = [
        (
            ids[one.session.id],
            "" if one.seq is None else f"#{one.seq}",
            clipped(name(one.session), WIDEST_TITLE),
            one.snippet,
        )
        for one in found
    ]
    return table(("ID", "ROW", "TITLE", "FOUND"), rows, columns=columns, numbers=("ROW",), spare=("TITLE",))


def header_lines(session: Session) -> Iterator[str]:
    """Yield what is known of a session, what is empty left out."""
    yield cell(name(session))
    facts = {
        "id": session.id,
        "key": str(session.key),
        "from": session.origin_label,
        "parent": session.parent_id or "",
        "workspace": session.workspace,
        "agent": session.agent,
        "model": session.model,
        "mode": session.mode,
        "created": f"{moment(session.created_at)} UTC",
        "updated": f"{moment(session.updated_at)} UTC",
        "closed": f"{moment(session.closed_at)} UTC" if session.closed_at else "",
        "state": state(session),
        "rows": str(session.message_count),
    }
    for label, fact in facts.items():
        if fact:
            yield f"  {label:<9} {cell(fact)}"


def row_lines(row: Message) -> Iterator[str]:
    """Yield a row: who, when, of what kind and why it is hidden; below it its words, indented."""
    who = row.sender.name or row.sender.id if row.sender else row.name or ""
    marks = f"[{', '.join(sorted(row.marks))}]" if row.marks else ""
    when = f"{moment(row.created_at)} UTC" if row.created_at else ""
    yield "  ".join(piece for piece in (f"#{row.seq}", when, row.role.value, cell(who), row.kind.value, marks) if piece)
    # Indented, so that no words of a chat can pass for the head of a row.
    text = scrubbed(row.text) if row.kind is Kind.ANNOUNCEMENT else row.text
    yield from (f"    {line}".rstrip() for line in safe(text).split("\n") if text)
    yield from (f"    → {cell(call.name)} {cell(call.arguments)}" for call in row.tool_calls)
    yield from (f"    + {cell(file.kind)} {cell(file.name or file.ref)}" for file in row.media)


def count_lines(counts: Sequence[Mapping[str, Any]], columns: int | None) -> list[str]:
    """Return what each channel holds as a table, with the sum below where there are several."""
    names = ("sessions", "open", "closed", "pinned", "archived", "message_count")
    rows = [[one["channel"], *(str(one[name]) for name in names), one["updated_at"][:10]] for one in counts]
    if len(counts) > 1:
        rows.append(["all", *(str(sum(one[name] for one in counts)) for name in names), ""])
    numbers = ("SESSIONS", "OPEN", "CLOSED", "PINNED", "ARCHIVED", "ROWS")
    spare = ("ARCHIVED", "PINNED", "CLOSED", "OPEN", "SESSIONS")
    return table(("CHANNEL", *numbers, "LAST USED"), rows, columns=columns, numbers=numbers, spare=spare)


def name(session: Session) -> str:
    """Return what to call a session: its title, else how it begins, else that it says nothing yet."""
    return session.title or session.preview or "(nothing said yet)"


def place(session: Session) -> str:
    """Return where a session came from, for people."""
    return session.origin_label or session.key.channel


def state(session: Session) -> str:
    """Return the flags of a session in words."""
    flags = {"pinned": session.pinned, "archived": session.archived, "closed": session.closed_at is not None}
    return ", ".join(word for word, is_set in flags.items() if is_set)


def moment(when: datetime) -> str:
    """Return a moment to the minute, in UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def short_ids(ids: Sequence[str]) -> Mapping[str, str]:
    """Return the beginning of each id, as long as it takes to tell them apart."""
    distinct, length = set(ids), SHORT_ID
    while len({id[:length] for id in distinct}) < len(distinct):
        length += 1
    return {id: id[:length] for id in distinct}


def header_data(session: Session) -> dict[str, Any]:
    """Return a header as plain data."""
    return {field: plain(getattr(session, field)) for field in HEADER}


def row_data(row: Message) -> dict[str, Any]:
    """Return a row as plain data, whole."""
    return {field.name: plain(getattr(row, field.name)) for field in fields(row)}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: moments as ISO texts in UTC, keys as they are written, sets in order."""
    if isinstance(value, SessionKey):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(plain(one) for one in value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; what the output's encoding cannot write is written as an escape."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        typer.echo("\n".join(lines).encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:  # a reader that has seen enough is no failure to speak of; typer ends the command silently
        raise
    except OSError as error:
        raise Unavailable(f"cannot write the output: {error.strerror}") from error


def print_json(objects: Iterable[Mapping[str, Any]]) -> None:
    """Print a list of objects. Nothing but ASCII, so that no control character and no encoding is in the way."""
    print_lines([json.dumps(list(objects), indent=2)])


def terminal_columns() -> int | None:
    """Return how wide the terminal is, or None where there is none and nothing needs to be shortened."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


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
