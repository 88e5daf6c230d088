"""Several processes on one directory, and kills: a row never stands without its bytes."""

from __future__ import annotations

import asyncio
import hashlib
import random
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.media import FileMedia
from gateway.ports.media import MediaIndex, StoredMedia
from gateway.store import Store
from gateway.store.sqlite.connection import connect
from tests.acceptance.gateway import HANG_SECONDS, REPOSITORY
from tests.clock import ManualClock
from tests.media.rig import ELSEWHERE, PICTURE, file_media, files, place, read, stream
from tests.stores import open_engine

HOUR = timedelta(hours=1)
KILLS, KILLS_PROVING = 5, 200

OPENED = """
import asyncio, os, sys, uuid
from pathlib import Path
from gateway.ports.media import MediaMeta
from gateway.wakeups.clock import SystemClock
from tests.media.rig import PICTURE, file_media, stream
from tests.stores import open_engine

async def main(folder, *arguments):
    async with open_engine("sqlite", Path(folder), SystemClock()) as store:
        await work(file_media(Path(folder), store), *arguments)
"""
HALF = """
async def half():
    for _ in range(20):
        yield b"x" * 100_000
    print("half", flush=True)
    await asyncio.Event().wait()

async def work(media):
    await media.put(half(), PICTURE)
"""
ENDLESS = """
async def work(media):
    print("ready", flush=True)
    # One file of its own and one that all share, which comes and goes.
    while True:
        stored = await media.put(stream(os.urandom(300_000)), PICTURE)
        print(stored.ref, flush=True)
        meta = MediaMeta(session_id=uuid.uuid4().hex, kind="file")
        shared = await media.put(stream(b"shared" * 50_000), meta)
        await media.delete(shared.ref)
"""
SAME = """
async def work(media, name):
    for number in range(60):
        data = b"%d" % (number % 7) * 30_000
        meta = MediaMeta(session_id=f"{name}{number}", kind="file")
        stored = await media.put(stream(data, data), meta)
        assert b"".join([chunk async for chunk in media.open(stored.ref)]) == data + data
        if number % 2:
            await media.delete(stored.ref)
"""
RUN = "asyncio.run(main(*sys.argv[1:]))"


def process(work: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    script = [sys.executable, "-c", OPENED + work + RUN, str(folder), *arguments]
    return subprocess.Popen(script, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)


class PausedIndex(MediaIndex):
    """Another process's view of an index, which stops at the step named `at` until it is let go on."""

    def __init__(self, index: MediaIndex, at: str, *, skip: int = 0) -> None:
        """Pass the step `skip` times before stopping at it."""
        self._index = index
        self._at = at
        self._skip = skip
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def _step(self, name: str) -> None:
        if name != self._at:
            return
        self._skip -= 1
        if self._skip < 0:
            self.reached.set()
            await self.go_on.wait()

    async def add(self, stored: StoredMedia) -> StoredMedia:
        await self._step("before adding")
        added = await self._index.add(stored)
        await self._step("after adding")
        return added

    async def get(self, ref: str) -> StoredMedia:
        return await self._index.get(ref)

    async def find(self, session_id: str) -> Sequence[StoredMedia]:
        return await self._index.find(session_id)

    async def delete(self, ref: str) -> bool:
        await self._step("before deleting")
        return await self._index.delete(ref)

    async def used(self, sha256s: Collection[str]) -> set[str]:
        used = await self._index.used(sha256s)
        await self._step("after asking")
        return used

    async def usage(self, session_id: str | None = None) -> int:
        return await self._index.usage(session_id)


@pytest.mark.parametrize("at", ["before adding", "after adding"])
async def test_bytes_on_their_way_in_are_not_removed_with_the_last_row_that_had_them(
    media: FileMedia, store: Store, tmp_path: Path, at: str
) -> None:
    last = await media.put(stream(b"bytes"), PICTURE)
    index = PausedIndex(store.media, at)
    putting = asyncio.create_task(FileMedia(tmp_path / "media", index).put(stream(b"bytes"), ELSEWHERE))
    await index.reached.wait()
    assert await media.delete(last.ref)
    assert await media.sweep(HOUR, datetime.now(UTC) + 2 * HOUR) == 0
    index.go_on.set()
    assert await read(media, (await putting).ref) == b"bytes"


@pytest.mark.parametrize("at", ["before deleting", "after asking"])
async def test_bytes_that_come_while_they_are_being_removed_are_there_afterwards(
    media: FileMedia, store: Store, tmp_path: Path, at: str
) -> None:
    last = await media.put(stream(b"bytes"), PICTURE)
    index = PausedIndex(store.media, at)
    deleting = asyncio.create_task(FileMedia(tmp_path / "media", index).delete(last.ref))
    await index.reached.wait()
    putting = asyncio.create_task(media.put(stream(b"bytes"), ELSEWHERE))
    await asyncio.wait({putting}, timeout=0.3)
    index.go_on.set()
    assert await deleting
    assert await read(media, (await putting).ref) == b"bytes"


@pytest.mark.parametrize("skip", [0, 1])
async def test_bytes_that_come_while_a_sweep_removes_them_are_there_afterwards(
    media: FileMedia, store: Store, tmp_path: Path, skip: int
) -> None:
    await store.media.delete((await media.put(stream(b"bytes"), PICTURE)).ref)
    index = PausedIndex(store.media, "after asking", skip=skip)
    sweeper = FileMedia(tmp_path / "media", index)
    sweeping = asyncio.create_task(sweeper.sweep(HOUR, datetime.now(UTC) + 2 * HOUR))
    await index.reached.wait()
    putting = asyncio.create_task(media.put(stream(b"bytes"), ELSEWHERE))
    await asyncio.wait({putting}, timeout=0.3)
    index.go_on.set()
    await sweeping
    assert await read(media, (await putting).ref) == b"bytes"


@pytest.mark.parametrize("by", ["delete", "sweep"])
async def test_a_removal_that_is_cancelled_goes_on_to_its_end_and_lets_go(
    media: FileMedia, store: Store, tmp_path: Path, by: str
) -> None:
    ref = (await media.put(stream(b"bytes"), PICTURE)).ref
    index = PausedIndex(store.media, "after asking", skip=int(by == "sweep"))
    remover = FileMedia(tmp_path / "media", index)
    if by == "delete":
        task: asyncio.Task[int] = asyncio.create_task(remover.delete(ref))
    else:
        await store.media.delete(ref)
        task = asyncio.create_task(remover.sweep(HOUR, datetime.now(UTC) + 2 * HOUR))
    await index.reached.wait()
    task.cancel()
    index.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert files(tmp_path) == []
    assert await read(media, (await media.put(stream(b"bytes"), PICTURE)).ref) == b"bytes"


async def test_a_put_killed_halfway_leaves_no_row_and_a_draft_for_the_sweep(
    media: FileMedia, store: Store, tmp_path: Path
) -> None:
    with process(HALF, tmp_path) as killed:
        assert killed.stdout is not None
        assert await asyncio.to_thread(killed.stdout.readline) == "half\n"
        killed.kill()
    assert await store.media.find("s1") == []
    (draft,) = files(tmp_path)
    assert draft.stat().st_size > 1_000_000
    assert await media.sweep(HOUR, datetime.now(UTC)) == 0
    assert await media.sweep(HOUR, datetime.now(UTC) + 2 * HOUR) == 1
    assert files(tmp_path) == []


@pytest.mark.timeout(1200)
async def test_whatever_moment_a_kill_comes_at_every_row_has_its_bytes(tmp_path: Path, proving: bool) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for _ in range(KILLS_PROVING if proving else KILLS):
        acknowledged = await asyncio.to_thread(_killed, tmp_path, chance.random() * 0.2)
        async with open_engine("sqlite", tmp_path, ManualClock()) as store:
            media = file_media(tmp_path, store)
            kept = _rows(tmp_path)
            assert acknowledged <= set(kept), seed
            for ref, sha256 in kept.items():
                assert hashlib.sha256(await read(media, ref)).hexdigest() == sha256, seed
                await media.delete(ref)
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        await file_media(tmp_path, store).sweep(HOUR, datetime.now(UTC) + 2 * HOUR)
    assert files(tmp_path) == [], seed


async def test_processes_that_put_and_delete_the_same_bytes_never_lose_them(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        workers = [process(SAME, tmp_path, name) for name in ("a", "b", "c")]
        try:
            assert [await asyncio.to_thread(worker.wait, HANG_SECONDS) for worker in workers] == [0, 0, 0]
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
        media = file_media(tmp_path, store)
        assert len(_rows(tmp_path)) == 90
        for ref, sha256 in _rows(tmp_path).items():
            assert hashlib.sha256(await read(media, ref)).hexdigest() == sha256
        await media.sweep(HOUR, datetime.now(UTC) + 2 * HOUR)
        assert set(files(tmp_path)) == {place(tmp_path, b"%d" % number * 60_000) for number in range(7)}


def _killed(folder: Path, seconds: float) -> set[str]:
    """Let a process put files for a moment, kill it, and return what it said was kept."""
    with process(ENDLESS, folder) as putting:
        assert putting.stdout is not None
        assert putting.stdout.readline() == "ready\n"
        time.sleep(seconds)
        putting.kill()
        # A line that the kill has cut short acknowledges nothing.
        return {line.strip() for line in putting.stdout.readlines() if line.endswith("\n")}


def _rows(folder: Path) -> dict[str, str]:
    with closing(connect(folder / "store.db")) as connection:
        return {row["ref"]: row["sha256"] for row in connection.execute("SELECT ref, sha256 FROM media")}
