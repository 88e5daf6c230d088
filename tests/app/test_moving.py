"""Sessions on their way out: however many files one has, few of their bytes are in memory at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.app.moving import Exported
from gateway.domain.errors import NotFound, Unavailable
from gateway.domain.keys import SessionKey
from gateway.domain.message import MediaRef, Message, Role
from gateway.domain.session import Session
from gateway.ports.media import Media, MediaMeta, StoredMedia
from gateway.ports.sessions import SessionCopy
from tests.stores import NOON

CHUNK, CHUNKS = b"x" * 1000, 20
REFS = ("m_1", "m_2", "gone", "m_3")


class Watched(Media):
    """Files of which each is given out in chunks; it knows how many are open, and how far the last one was read."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.open_now = 0
        self.given = 0

    async def open(self, ref: str) -> AsyncIterator[bytes]:
        if ref == "gone":
            raise NotFound(ref)
        self.opened.append(ref)
        self.open_now += 1
        assert self.open_now == 1
        try:
            for _ in range(CHUNKS):
                self.given += 1
                yield CHUNK
        finally:
            self.open_now -= 1

    async def stat(self, ref: str) -> StoredMedia:
        if ref == "gone":
            raise NotFound(ref)
        meta = MediaMeta(session_id="s1", kind="image", name="cat.png", mime="image/png")
        return StoredMedia(ref=ref, meta=meta, size_bytes=len(CHUNK) * CHUNKS, sha256="0" * 64)

    async def put(self, stream: AsyncIterator[bytes], meta: MediaMeta, *, max_bytes: int | None = None) -> StoredMedia:
        raise NotImplementedError

    async def delete(self, ref: str) -> bool:
        raise NotImplementedError

    async def usage(self, scope: str | None = None) -> int:
        raise NotImplementedError

    async def sweep(self, older_than: timedelta, now: datetime) -> int:
        raise NotImplementedError


def exported(media: Media) -> Exported:
    files = tuple(MediaRef(ref=ref, kind="image", name="cat.png") for ref in REFS)
    row = Message(role=Role.USER, content="look", seq=1, media=files)
    session = Session(id="s1", key=SessionKey("slack", "D1"), created_at=NOON, updated_at=NOON)
    return Exported(SessionCopy(session=session, rows=[row]), media)


async def test_the_files_of_a_session_are_never_in_memory_together() -> None:
    media = Watched()
    pieces = exported(media).jsonl(files=True)
    text, given = "", 0
    async for piece in pieces:
        assert len(piece) < 2 * len(CHUNK)
        assert media.given - given <= 2
        text, given = text + piece, media.given
    assert media.opened == ["m_1", "m_2", "m_3"]
    assert media.open_now == 0
    assert text.count('"type":"media"') == 3


async def test_an_export_that_is_given_up_leaves_no_file_open() -> None:
    media = Watched()
    pieces = exported(media).jsonl(files=True)
    while media.given < 3:
        await anext(pieces)
    await pieces.aclose()
    assert media.open_now == 0


async def test_files_for_nanobot_are_copied_in_chunks_and_one_that_is_gone_is_told(tmp_path: Path) -> None:
    media = Watched()
    file = await exported(media).nanobot(tmp_path / "media", zone=UTC, channels={})
    assert [path.stat().st_size for path in sorted((tmp_path / "media").iterdir())] == [20_000] * 3
    assert [loss.told(count) for loss, count in file.losses.items()] == [
        "1 file lies nowhere that nanobot could read it; left out."
    ]


async def test_a_directory_that_cannot_be_made_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="Not a directory"):
        await exported(Watched()).nanobot(tmp_path / "file" / "media", zone=UTC, channels={})
