"""What tests of kept files share."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.media import FileMedia
from gateway.ports.media import MediaMeta
from gateway.store import Store

HOUR = timedelta(hours=1)
PICTURE = MediaMeta(session_id="s1", kind="image", name="cat.png", mime="image/png")
ELSEWHERE = MediaMeta(session_id="s2", kind="image", name="cat.png", mime="image/png")


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read(media: FileMedia, ref: str) -> bytes:
    return b"".join([chunk async for chunk in media.open(ref)])


def file_media(folder: Path, store: Store) -> FileMedia:
    """Return the media of the store at `folder`, as each process makes its own."""
    return FileMedia(folder / "media", store.media)


def files(folder: Path) -> list[Path]:
    """Return every file below the media directory of `folder` but the lock."""
    return [path for path in sorted((folder / "media").rglob("*")) if path.is_file() and path.name != ".lock"]


def place(folder: Path, data: bytes) -> Path:
    """Return where these bytes are kept."""
    sha256 = hashlib.sha256(data).hexdigest()
    return folder / "media" / sha256[:2] / sha256


def later() -> datetime:
    """Return a time when all that is kept now is old."""
    return datetime.now(UTC) + 2 * HOUR


@contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """Let no file grow beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
