"""How sessions and rows are shown: lines of plain text for people, plain data for programs.

Titles and rows come from chats, so whatever could drive a terminal or break a line is written as an escape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from gateway.cli.columns import cell, clipped, table
from gateway.cli.printing import plain
from gateway.domain.message import Message
from gateway.domain.scrub import words_of
from gateway.domain.session import Session
from gateway.domain.text import inert
from gateway.ports.sessions import Found

HEADER = (
    "id", "key", "workspace", "agent", "model", "mode", "title", "title_edited", "preview", "message_count",
    "created_at", "updated_at", "closed_at", "extra_roots", "grants", "pinned", "archived", "origin", "origin_label",
    "parent_id", "consolidated_through", "replay_from", "compaction", "metadata",
)  # fmt: skip
"""The fields of a session as a program is given them, in this order."""

WIDEST_TITLE = 40
"""How much of a title is shown beside what a search found."""
ROOM_FOR_ORIGINS = 110
"""How wide a terminal must be for the column that says where a session came from; its key says more."""
SHORT_ID = 8


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


def header_lines(session: Session, attic: str = "") -> Iterator[str]:
    """Yield what is known of a session, what is empty left out; `attic` says how many rows are in its attic."""
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
        "attic": attic,
    }
    for label, fact in facts.items():
        if fact:
            yield fact_line(label, fact)


def fact_line(label: str, fact: str) -> str:
    """Return a line of a header."""
    return f"  {label:<9} {cell(fact)}"


def row_lines(row: Message) -> Iterator[str]:
    """Yield a row: who, when, of what kind and why it is hidden; below it its words, indented."""
    who = row.sender.name or row.sender.id if row.sender else row.name or ""
    marks = f"[{', '.join(sorted(row.marks))}]" if row.marks else ""
    when = f"{moment(row.created_at)} UTC" if row.created_at else ""
    yield "  ".join(piece for piece in (f"#{row.seq}", when, row.role.value, cell(who), row.kind.value, marks) if piece)
    # Indented, so that no words of a chat can pass for the head of a row.
    text = words_of(row)
    yield from (f"    {line}".rstrip() for line in inert(text).split("\n") if text)
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
    # Rows that left it have counted its revision up; one in which nobody spoke yet has none.
    nothing = "(cleared)" if session.revision and not session.message_count else "(nothing said yet)"
    return session.title or session.preview or nothing


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
