"""Our own JSON lines as other programs see them."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from hypothesis import given

from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message, Role
from gateway.domain.session import Session
from gateway.ports.media import MediaMeta, StoredMedia
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.jsonl.writer import pieces
from tests.store.jsonl.written import bytes_of, lines
from tests.store.strategies import copies, files_of, unhurried

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = Session(id="s1", key=SessionKey("slack", "C1:x"), created_at=NOON, updated_at=NOON)
HELLO = Message(role=Role.USER, content="Grüße\n", seq=7, marks=frozenset({Mark.UNDONE, Mark.DELETED}))


def read(copy: SessionCopy) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(copy)]


def test_a_header_comes_first_with_its_format_and_only_what_differs_from_the_defaults() -> None:
    assert read(SessionCopy(session=HEADER))[0] == {
        "type": "session",
        "format": 1,
        "id": "s1",
        "key": "slack:C1%3Ax",
        "created_at": "2026-11-30T12:00:00Z",
        "updated_at": "2026-11-30T12:00:00Z",
    }


def test_a_row_names_its_session_and_its_place() -> None:
    row = {"role": "user", "content": "Grüße\n", "seq": 7, "marks": ["deleted", "undone"]}
    assert read(SessionCopy(session=HEADER, rows=[HELLO]))[1] == {"type": "row", "session": "s1", **row}


def test_a_row_of_the_attic_says_why_and_when_it_was_moved() -> None:
    attic = read(SessionCopy(session=HEADER, attic=[Retired(row=HELLO, reason="cleared", moved_at=NOON)]))[1]
    assert (attic["type"], attic["reason"], attic["moved_at"]) == ("attic", "cleared", "2026-11-30T12:00:00Z")


def test_text_stands_in_the_file_as_it_is() -> None:
    assert '"content":"Grüße\\n"' in list(lines(SessionCopy(session=HEADER, rows=[HELLO])))[1]


async def test_files_are_asked_for_one_at_a_time_and_written_in_pieces() -> None:
    asked: list[int] = []
    data = bytes(range(256)) * 4

    async def files() -> AsyncIterator[tuple[StoredMedia, AsyncIterator[bytes]]]:
        for n in range(3):
            asked.append(n)
            meta = MediaMeta(session_id="s1", kind="image", name="cat.png")
            yield StoredMedia(ref=f"m_{n}", meta=meta, size_bytes=1, sha256="0" * 64), bytes_of(data, size=100)

    written = pieces(SessionCopy(session=HEADER), files())
    await anext(written)
    line = ""
    while not line.endswith("\n"):
        piece = await anext(written)
        assert len(piece) < 400
        line += piece
    assert json.loads(line) == {
        "type": "media",
        "session": "s1",
        "ref": "m_0",
        "meta": {"session_id": "s1", "kind": "image", "name": "cat.png", "mime": ""},
        "size_bytes": 1,
        "sha256": "0" * 64,
        "data": base64.b64encode(data).decode(),
    }
    assert asked == [0]


@unhurried
@given(copies())
def test_each_line_is_one_object_and_the_last_counts_the_others(copy: SessionCopy) -> None:
    written = list(lines(copy, files_of(copy)))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)
    kinds = [json.loads(line)["type"] for line in written]
    assert json.loads(written[-1]) == {
        "type": "end",
        "session": copy.session.id,
        "rows": kinds.count("row"),
        "attic": kinds.count("attic"),
        "media": kinds.count("media"),
    }


def test_no_field_of_a_row_is_called_what_a_line_says_of_itself() -> None:
    own = {"type", "format", "session", "reason", "moved_at"}
    assert own.isdisjoint(field.name for holder in (Message, Session) for field in fields(holder))
