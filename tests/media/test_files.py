"""Media as files: what is on the disk, and what is never left on it."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from gateway.domain.errors import NotFound, Refused
from gateway.media import FileMedia, MediaOptions
from gateway.ports.media import StoredMedia
from gateway.store import Store
from tests.media.rig import ELSEWHERE, PICTURE, file_media, files, place, read, stream


@contextmanager
def nothing_hidden() -> Iterator[None]:
    """Take no permission away from new files, as a careless service unit does."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


def opened_below(folder: Path) -> list[str]:
    return [file.path for file in psutil.Process().open_files() if Path(file.path).is_relative_to(folder)]


async def test_bytes_are_one_file_for_all_sessions_and_go_with_the_last(media: FileMedia, tmp_path: Path) -> None:
    one, two = await media.put(stream(b"same"), PICTURE), await media.put(stream(b"same"), ELSEWHERE)
    assert files(tmp_path) == [place(tmp_path, b"same")]
    await media.delete(one.ref)
    assert files(tmp_path) == [place(tmp_path, b"same")]
    await media.delete(two.ref)
    assert files(tmp_path) == []


async def test_only_the_owner_may_look(media: FileMedia, tmp_path: Path) -> None:
    with nothing_hidden():
        await media.put(stream(b"private"), PICTURE)
    kept = place(tmp_path, b"private")
    paths = [kept.parent.parent, kept.parent, kept, tmp_path / "media" / ".lock"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o700, 0o700, 0o600, 0o600]


async def test_the_bytes_and_their_place_are_durable_before_their_row(
    media: FileMedia, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, synced = place(tmp_path, b"bytes"), []
    fsync, add = os.fsync, store.media.add

    def note(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_relative_to(kept.parent.parent):
            synced.append("the draft" if path.suffix == ".draft" else path)
        fsync(descriptor)

    async def adding(stored: StoredMedia) -> StoredMedia:
        synced.append("then the row")
        return await add(stored)

    monkeypatch.setattr(os, "fsync", note)
    store.media.add = adding  # type: ignore[method-assign]
    await media.put(stream(b"bytes"), PICTURE)
    assert synced == ["the draft", kept.parent, kept.parent.parent, "then the row"]


async def test_a_put_that_is_refused_or_fails_leaves_nothing(media: FileMedia, tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x" * 1_000_000
        raise ConnectionResetError

    with pytest.raises(Refused):
        await media.put(stream(b"x" * 1_000_000, b"y"), PICTURE, max_bytes=1_000_000)
    with pytest.raises(ConnectionResetError):
        await media.put(broken(), PICTURE)
    assert files(tmp_path) == []


async def test_a_put_cancelled_at_any_moment_is_whole_or_nothing(
    media: FileMedia, store: Store, tmp_path: Path
) -> None:
    outcomes = set()
    for step in range(80):
        data = b"%d" % step * 100_000
        task = asyncio.create_task(media.put(stream(data, data), replace(PICTURE, session_id=f"s{step}")))
        await asyncio.sleep(step * 0.0002)
        task.cancel()
        await asyncio.wait({task})
        kept = await store.media.find(f"s{step}")
        outcomes.add(len(kept))
        assert files(tmp_path) == [place(tmp_path, data + data) for _ in kept]
        assert [await read(media, file.ref) for file in kept] == [data + data for _ in kept]
        for file in kept:
            await media.delete(file.ref)
    assert outcomes == {0, 1}


async def test_reading_that_is_cancelled_or_given_up_leaves_no_file_open(media: FileMedia, tmp_path: Path) -> None:
    stored = await media.put(stream(b"x" * 2_000_000), PICTURE)
    await read(media, stored.ref)
    for step in range(40):
        task = asyncio.create_task(read(media, stored.ref))
        await asyncio.sleep(step * 0.0001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    chunks = media.open(stored.ref)
    await anext(chunks)
    await chunks.aclose()  # type: ignore[attr-defined]
    assert opened_below(tmp_path / "media") == []


async def test_a_file_is_read_to_its_end_although_it_is_deleted_meanwhile(media: FileMedia, tmp_path: Path) -> None:
    stored = await media.put(stream(b"x" * 1_000_000), PICTURE)
    chunks = media.open(stored.ref)
    first = await anext(chunks)
    await media.delete(stored.ref)
    assert files(tmp_path) == []
    assert len(first) + sum([len(chunk) async for chunk in chunks]) == 1_000_000


async def test_a_file_that_is_gone_or_cut_short_is_not_found_until_it_is_put_again(
    media: FileMedia, tmp_path: Path
) -> None:
    """Case C2, for files."""
    stored = await media.put(stream(b"bytes"), PICTURE)
    for left in (None, b"", b"b"):
        place(tmp_path, b"bytes").unlink()
        if left is not None:
            place(tmp_path, b"bytes").write_bytes(left)
        with pytest.raises(NotFound):
            await read(media, stored.ref)
        assert await media.put(stream(b"bytes"), PICTURE) == stored
        assert await read(media, stored.ref) == b"bytes"


async def test_a_damaged_row_does_not_lead_out_of_the_directory(media: FileMedia, store: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("12345")
    for number, sha256 in enumerate(["../secret", str(secret), "ab/../../secret", "\0", ""]):
        await store.media.add(StoredMedia(ref=f"m_{number}", meta=PICTURE, size_bytes=5, sha256=sha256))
        with pytest.raises(NotFound, match="damaged"):
            await read(media, f"m_{number}")
        assert await media.delete(f"m_{number}")
    assert secret.exists()


def test_files_are_beside_the_database_unless_a_directory_is_named() -> None:
    database = Path("/var/lib/trunkline/trunkline.db")
    assert MediaOptions().folder(database) == Path("/var/lib/trunkline/media")
    assert MediaOptions(directory="~/files").folder(database) == Path.home() / "files"
    assert MediaOptions(max_file_mb=2).max_file_bytes == 2_097_152


async def test_two_media_of_one_directory_see_the_same_files(media: FileMedia, store: Store, tmp_path: Path) -> None:
    stored = await media.put(stream(b"bytes"), PICTURE)
    assert await read(file_media(tmp_path, store), stored.ref) == b"bytes"
