"""What trouble with the disk looks like to whoever keeps files on it: it is told, and leaves nothing half done."""

from __future__ import annotations

import asyncio
import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.domain.errors import Unavailable
from gateway.media import FileMedia
from gateway.ports.media import StoredMedia
from gateway.store import Store
from tests.acceptance.gateway import REPOSITORY
from tests.media.rig import ELSEWHERE, HOUR, PICTURE, files, full_disk, later, place, read, stream

CAPABILITY_TO_WRITE_ANYWHERE = 1
DROP_FROM_BOUNDING_SET = 24


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
