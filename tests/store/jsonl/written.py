"""What is written of sessions in our own format, and what is read of it again."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.session import Session
from gateway.ports.media import StoredMedia
from gateway.ports.moving import FoundSession
from gateway.ports.sessions import SessionCopy
from gateway.store.jsonl.reader import TrunklineSource
from gateway.store.jsonl.writer import Files, pieces
from tests.store.strategies import files_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = Session(id="s1", key=SessionKey("slack", "D1"), created_at=NOON, updated_at=NOON)


async def bytes_of(data: bytes, size: int = 4) -> AsyncIterator[bytes]:
    """Yield bytes in chunks."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def each(media: Iterable[tuple[StoredMedia, bytes]]) -> Files:
    """Yield files as a store gives them out."""
    for stored, data in media:
        yield stored, bytes_of(data)


def lines(copy: SessionCopy, media: Iterable[tuple[StoredMedia, bytes]] = ()) -> list[str]:
    """Return the lines of a session with their line ends."""

    async def gathered() -> str:
        return "".join([piece async for piece in pieces(copy, each(media))])

    try:
        # Nothing in it waits for anything, so that no loop is needed.
        gathered().send(None)
    except StopIteration as ended:
        return [line + "\n" for line in str(ended.value).split("\n")[:-1]]
    raise AssertionError("expected it not to wait")


def row(seq: int, **fields: Any) -> Message:
    return Message(**{"role": Role.USER, "content": f"words {seq}", "seq": seq, "created_at": NOON, **fields})


def written(*several: SessionCopy) -> list[str]:
    return [line for copy in several for line in lines(copy, files_of(copy))]


def read(text: str | bytes) -> list[FoundSession]:
    """Return what is read of lines, but for being told that the closing line of a file is missing."""
    return [found for found in read_file(text) if not found.problem.startswith("the file ends without")]


def read_file(text: str | bytes) -> list[FoundSession]:
    """Return what is read of a whole file."""
    data = text if isinstance(text, bytes) else text.encode()
    return [as_tuples(found) for found in TrunklineSource(io.BytesIO(data)).sessions()]


def as_tuples(found: FoundSession) -> FoundSession:
    """Return it with sequences that compare with those of another copy."""
    return replace(found, copy=found.copy and listed(found.copy))


def listed(copy: SessionCopy) -> SessionCopy:
    return replace(copy, rows=tuple(copy.rows), attic=tuple(copy.attic))


def read_one(text: str | bytes) -> FoundSession:
    (found,) = read(text)
    return found
