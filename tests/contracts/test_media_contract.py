"""What every media store promises, and every index of one."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.errors import NotFound, Refused
from gateway.media import FileMedia
from gateway.ports.media import Media, MediaMeta, StoredMedia, media_ref
from gateway.ports.sessions import NewSession
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ROUTE

LARGE = os.urandom(3_000_000)
PICTURE = MediaMeta(session_id="s1", kind="image", name="cat.png", mime="image/png")
ELSEWHERE = MediaMeta(session_id="s2", kind="image", name="other.png", mime="image/png")


@pytest.fixture(params=["files"])
def media(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> Media:
    assert request.param == "files"
    return FileMedia(tmp_path / "media", store.media)


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(media: Media, ref: str) -> bytes:
    return b"".join([chunk async for chunk in media.open(ref)])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def noted(meta: MediaMeta, data: bytes) -> StoredMedia:
    sha256 = hashlib.sha256(data).hexdigest()
    return StoredMedia(ref=media_ref(meta.session_id, sha256), meta=meta, size_bytes=len(data), sha256=sha256)


def test_the_reference_of_the_same_bytes_in_a_session_is_the_same_in_every_release() -> None:
    assert media_ref("s1", "0" * 64) == "m_91ab30dc08ff2039"
    assert media_ref("s1", "0" * 64) != media_ref("s2", "0" * 64)


@pytest.mark.parametrize("chunks", [(b"one",), (b"o", b"", b"ne"), (), (LARGE,), tuple([b"x" * 999] * 999)])
async def test_what_is_put_is_read_back_and_told_of(media: Media, chunks: tuple[bytes, ...]) -> None:
    data = b"".join(chunks)
    stored = await media.put(stream(*chunks), PICTURE)
    assert stored == noted(PICTURE, data)
    assert await read(media, stored.ref) == data
    assert await media.stat(stored.ref) == stored
    assert await media.usage("s1") == await media.usage() == len(data)


async def test_the_same_bytes_in_a_session_are_one_file_and_keep_what_was_first_known_of_them(media: Media) -> None:
    first = await media.put(stream(b"same"), PICTURE)
    again = MediaMeta(session_id="s1", kind="file", name="again")
    assert await asyncio.gather(*(media.put(stream(b"sa", b"me"), again) for _ in range(10))) == [first] * 10
    assert await media.usage("s1") == 4


async def test_sessions_that_share_bytes_have_references_of_their_own_and_lose_only_their_own(media: Media) -> None:
    one, two = await media.put(stream(b"same"), PICTURE), await media.put(stream(b"same"), ELSEWHERE)
    assert one.ref != two.ref
    assert [await media.usage(scope) for scope in ("s1", "s2", None)] == [4, 4, 4]
    assert await media.delete(one.ref)
    assert await read(media, two.ref) == b"same"
    assert [await media.usage(scope) for scope in ("s1", "s2", None)] == [0, 4, 4]


@pytest.mark.parametrize("ref", ["", "m_0000000000000000", "../../etc/passwd", "/etc/passwd", "m_\0", ".lock"])
async def test_what_is_not_kept_is_not_found(media: Media, ref: str) -> None:
    await media.put(stream(b"another"), PICTURE)
    with pytest.raises(NotFound):
        await media.stat(ref)
    with pytest.raises(NotFound):
        await read(media, ref)
    assert not await media.delete(ref)


async def test_a_deleted_file_is_gone_and_can_be_kept_again(media: Media) -> None:
    stored = await media.put(stream(b"bytes"), PICTURE)
    assert await media.delete(stored.ref)
    assert not await media.delete(stored.ref)
    with pytest.raises(NotFound):
        await read(media, stored.ref)
    assert await media.usage() == 0
    assert await media.put(stream(b"bytes"), PICTURE) == stored
    assert await read(media, stored.ref) == b"bytes"


async def test_a_file_as_large_as_allowed_is_kept_and_a_larger_one_refused(media: Media) -> None:
    assert (await media.put(stream(b"12345", b"67890"), PICTURE, max_bytes=10)).size_bytes == 10
    with pytest.raises(Refused, match="at most 10 bytes, got 12 or more"):
        await media.put(stream(b"123456", b"abcdef", b"never looked at"), ELSEWHERE, max_bytes=10)
    assert await media.usage("s2") == 0


@pytest.mark.parametrize("size", [0, 3_000_000])
async def test_a_stream_that_fails_keeps_nothing_and_is_heard_of(media: Media, size: int) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * size
        raise ConnectionResetError("the platform hung up")

    with pytest.raises(ConnectionResetError, match="hung up"):
        await media.put(broken(), PICTURE)
    assert await media.usage() == 0


async def test_a_cancelled_put_keeps_nothing(media: Media) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield LARGE
        reached.set()
        await asyncio.Event().wait()

    reached = asyncio.Event()
    task = asyncio.create_task(media.put(slow(), PICTURE))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await media.usage() == 0


@pytest.mark.parametrize("largest", [10, None])
async def test_a_stream_is_closed_when_the_put_ends(media: Media, largest: int | None) -> None:
    async def download() -> AsyncIterator[bytes]:
        try:
            yield b"x" * 20
            yield b"y"
        finally:
            closed.set()

    closed, source = asyncio.Event(), download()
    if largest:
        with pytest.raises(Refused):
            await media.put(source, PICTURE, max_bytes=largest)
    else:
        await media.put(source, PICTURE)
    assert closed.is_set()


@pytest.mark.parametrize(
    "name", ["../../x", "..\\..\\x", "/etc/x", "C:\\x", ".", "", "a\0b", ".bashrc", "\ud800", "x" * 5000, "猫.png"]
)
async def test_a_name_from_a_chat_is_kept_and_never_a_path(media: Media, tmp_path: Path, name: str) -> None:
    """Case K7."""
    beside = names(tmp_path.parent)
    stored = await media.put(stream(b"bytes"), MediaMeta(session_id="s1", kind="file", name=name, mime=name))
    assert stored.meta.name == name.replace("\0", "\ufffd").replace("\ud800", "\ufffd")
    assert await read(media, stored.ref) == b"bytes"
    assert names(tmp_path.parent) == beside
    assert names(tmp_path) <= {"media", "store.db", "store.db-wal", "store.db-shm"}


async def test_a_deleted_session_loses_its_files_and_gets_no_new_ones(media: Media, store: Store) -> None:
    session = await store.sessions.open(ROUTE.key, NewSession())
    meta = MediaMeta(session_id=session.id, kind="image")
    stored = await media.put(stream(b"bytes"), meta)
    other = await media.put(stream(b"bytes"), ELSEWHERE)
    await store.sessions.delete(session.id)
    with pytest.raises(NotFound):
        await read(media, stored.ref)
    with pytest.raises(NotFound, match="was deleted"):
        await media.put(stream(b"late"), meta)
    assert await media.usage(session.id) == 0
    assert await read(media, other.ref) == b"bytes"


async def test_an_index_lists_the_files_of_a_session_as_they_came(store: Store, clock: ManualClock) -> None:
    kept = []
    for number in range(5):
        kept.append(await store.media.add(noted(PICTURE, b"%d" % number)))
        await store.media.add(noted(ELSEWHERE, b"%d" % number))
        await clock.advance(1)
    assert await store.media.find("s1") == kept
    assert await store.media.find("nobody") == []


async def test_an_index_says_which_of_any_number_of_hashes_are_used(store: Store) -> None:
    files = [noted(PICTURE, b"%d" % number) for number in range(1200)]
    for file in files[::400]:
        await store.media.add(file)
    assert await store.media.used([file.sha256 for file in files]) == {file.sha256 for file in files[::400]}
    assert await store.media.used([]) == set()


async def test_an_index_refuses_a_reference_that_names_other_bytes(store: Store) -> None:
    first = noted(PICTURE, b"first")
    other = StoredMedia(ref=first.ref, meta=ELSEWHERE, size_bytes=1, sha256="f" * 64)
    assert await store.media.add(first) == first
    with pytest.raises(Refused, match="names others"):
        await store.media.add(other)
    assert await store.media.get(first.ref) == first
