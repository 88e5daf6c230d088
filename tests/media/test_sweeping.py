"""What a sweep of kept files removes, and what it leaves alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.domain.errors import Unavailable
from gateway.media import FileMedia
from gateway.store import Store
from tests.media.rig import HOUR, PICTURE, files, later, place, read, stream


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
