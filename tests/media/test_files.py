"""Media as files: what is on the disk, what is never left on it, and what trouble with it looks like."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from gateway.domain.errors import NotFound, Refused, Unavailable
from gateway.media import FileMedia, MediaOptions
from gateway.ports.media import StoredMedia
from gateway.store import Store
from tests.acceptance.gateway import REPOSITORY
from tests.media.rig import ELSEWHERE, PICTURE, file_media, files, place, read, stream

HOUR = timedelta(hours=1)
CAPABILITY_TO_WRITE_ANYWHERE = 1
DROP_FROM_BOUNDING_SET = 24


def later() -> datetime:
    return datetime.now(UTC) + 2 * HOUR


@contextmanager
def nothing_hidden() -> Iterator[None]:
    """Take no permission away from new files, as a careless service unit does."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """Let no file grow beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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


async def test_a_sweep_removes_what_is_old_and_unused_and_nothing_else(
    media: FileMedia, store: Store, tmp_path: Path
) -> None:
    used = await media.put(stream(b"used"), PICTURE)
    for number in range(3):
        unused = await media.put(stream(b"%d" % number), PICTURE)
        await store.media.delete(unused.ref)
    foreign = [tmp_path / "media" / name for name in ("notes.txt", "ab/notes.txt", "zz/notes.txt", "x.draft/y")]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not ours")
    (tmp_path / "media" / "left.draft").write_text("half")
    assert await media.sweep(HOUR, datetime.now(UTC)) == 0
    assert await media.sweep(HOUR, later()) == 4
    assert await media.sweep(HOUR, later()) == 0
    assert set(files(tmp_path)) == {place(tmp_path, b"used"), *foreign}
    assert await read(media, used.ref) == b"used"
    assert (tmp_path / "media" / ".lock").exists()


async def test_sweeps_at_the_same_time_do_not_stumble_over_each_other(media: FileMedia, tmp_path: Path) -> None:
    (tmp_path / "media").mkdir()
    for number in range(3000):
        (tmp_path / "media" / f"{number}.draft").touch()
    assert sum(await asyncio.gather(*(media.sweep(HOUR, later()) for _ in range(4)))) == 3000
    assert files(tmp_path) == []


async def test_there_is_nothing_to_sweep_where_nothing_was_ever_kept(media: FileMedia, tmp_path: Path) -> None:
    assert await media.sweep(HOUR, later()) == 0
    assert not (tmp_path / "media").exists()


async def test_bytes_that_are_put_again_are_young_again(media: FileMedia, store: Store, tmp_path: Path) -> None:
    stored = await media.put(stream(b"bytes"), PICTURE)
    os.utime(place(tmp_path, b"bytes"), (0, 0))
    await media.put(stream(b"bytes"), PICTURE)
    await store.media.delete(stored.ref)
    assert await media.sweep(HOUR, datetime.now(UTC)) == 0


async def test_a_put_whose_draft_was_swept_keeps_nothing(media: FileMedia, tmp_path: Path) -> None:
    async def stalled() -> AsyncIterator[bytes]:
        yield b"x" * 1_000_000
        assert await media.sweep(HOUR, later()) == 1
        yield b"y"

    with pytest.raises(Unavailable):
        await media.put(stalled(), PICTURE)
    assert files(tmp_path) == []
    assert await media.usage() == 0


async def test_a_full_disk_is_told_of_and_nothing_is_left(media: FileMedia, tmp_path: Path) -> None:
    before = await media.put(stream(b"before"), PICTURE)
    with full_disk(600_000):
        for sizes in ([700_000], [300_000, 300_000, 1], [100] * 7000):
            with pytest.raises(Unavailable, match="File too large"):
                await media.put(stream(*(b"x" * size for size in sizes)), ELSEWHERE)
        assert files(tmp_path) == [place(tmp_path, b"before")]
        assert await read(media, before.ref) == b"before"
    assert (await media.put(stream(b"x" * 700_000), ELSEWHERE)).size_bytes == 700_000


async def test_no_bytes_stay_where_their_row_cannot_be_noted(media: FileMedia, store: Store, tmp_path: Path) -> None:
    async def noting_fails(stored: StoredMedia) -> StoredMedia:
        raise Unavailable("the database is full")

    store.media.add = noting_fails  # type: ignore[method-assign]
    with pytest.raises(Unavailable, match="database is full"):
        await media.put(stream(b"bytes"), PICTURE)
    assert files(tmp_path) == []


async def test_a_directory_that_cannot_be_made_is_told_of(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for path in (tmp_path / "file", tmp_path / "file" / "media"):
        with pytest.raises(Unavailable, match=r"File exists|Not a directory"):
            await FileMedia(path, store.media).put(stream(b"bytes"), PICTURE)
    assert (tmp_path / "file").read_text() == "in the way"


READ_ONLY = """
import asyncio, sys
from pathlib import Path
from gateway.domain.errors import Unavailable
from tests.clock import ManualClock
from tests.media.rig import PICTURE, file_media, read, stream
from tests.stores import open_engine

async def main(folder, ref):
    async with open_engine("sqlite", folder, ManualClock()) as store:
        media = file_media(folder, store)
        print((await read(media, ref)).decode())
        try:
            await media.put(stream(b"new"), PICTURE)
        except Unavailable as error:
            print(error)
        print(await media.delete(ref), await media.usage())

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


async def test_what_is_in_a_read_only_directory_can_be_read_and_forgotten(
    media: FileMedia, store: Store, tmp_path: Path
) -> None:
    stored = await media.put(stream(b"bytes"), PICTURE)
    kept = place(tmp_path, b"bytes")
    folders = [kept.parent.parent, kept.parent]
    for folder in folders:
        folder.chmod(0o500)
    # Even root may then write only where it is allowed to.
    libc = ctypes.CDLL(None)
    outcome = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", READ_ONLY, str(tmp_path), stored.ref],
        capture_output=True, text=True, cwd=REPOSITORY, timeout=60,
        preexec_fn=lambda: libc.prctl(DROP_FROM_BOUNDING_SET, CAPABILITY_TO_WRITE_ANYWHERE, 0, 0, 0),
    )  # fmt: skip
    for folder in folders:
        folder.chmod(0o700)
    assert outcome.stdout.splitlines() == [
        "bytes", "files cannot be kept or read at the moment: Permission denied", "True 0",
    ], outcome.stderr  # fmt: skip
    assert await media.sweep(HOUR, later()) == 1


def test_files_are_beside_the_database_unless_a_directory_is_named() -> None:
    database = Path("/var/lib/trunkline/trunkline.db")
    assert MediaOptions().folder(database) == Path("/var/lib/trunkline/media")
    assert MediaOptions(directory="~/files").folder(database) == Path.home() / "files"
    assert MediaOptions(max_file_mb=2).max_file_bytes == 2_097_152


async def test_two_media_of_one_directory_see_the_same_files(media: FileMedia, store: Store, tmp_path: Path) -> None:
    stored = await media.put(stream(b"bytes"), PICTURE)
    assert await read(file_media(tmp_path, store), stored.ref) == b"bytes"
