"""The directory of kept files: `ab/abcdef…`, named by the SHA-256 of the bytes, and drafts beside them.

Everything here blocks, and raises what the system does.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import imagesize

from gateway.domain.errors import NotFound

_DRAFT = ".draft"
_SHARD = re.compile(r"[0-9a-f]{2}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Folder:
    """Where whole files are, by their hash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, sha256: str, size_bytes: int) -> BinaryIO:
        """Open a file to be read; raise `NotFound` if it is not there, or has another size than it was kept with."""
        try:
            file = self._place(sha256).open("rb", buffering=0)
        except FileNotFoundError as error:
            raise NotFound("the bytes of this file are gone") from error
        if os.fstat(file.fileno()).st_size != size_bytes:
            file.close()
            raise NotFound("the bytes of this file are damaged")
        return file

    def picture_size(self, sha256: str) -> tuple[int | None, int | None]:
        """Return width and height of a picture, in pixels, by what its first bytes say; None for anything else."""
        try:
            width, height = imagesize.get(self._place(sha256))
        except (ValueError, struct.error, OSError):
            return None, None
        return (width, height) if width > 0 and height > 0 else (None, None)

    def remove(self, sha256s: Iterable[str]) -> int:
        """Remove files and return how many were there."""
        return sum(_removed(self._place(sha256)) for sha256 in sha256s)

    def remove_drafts(self, before: float) -> int:
        """Remove drafts nobody has written to since `before`, and return how many there were."""
        names = [name for name in _old_files(self.path, before) if name.endswith(_DRAFT)]
        return sum(_removed(self.path / name) for name in names)

    def shards(self) -> list[str]:
        """Return the names of the directories that hold files."""
        with suppress(FileNotFoundError), os.scandir(self.path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir() and _SHARD.fullmatch(entry.name))
        return []

    def hashes(self, shard: str, before: float) -> list[str]:
        """Return the hashes of one directory's files that were kept before `before`."""
        names = _old_files(self.path / shard, before)
        return [name for name in names if _SHA256.fullmatch(name) and name.startswith(shard)]

    def take(self, draft: Draft) -> None:
        """Make a finished draft one of the files, durably. It takes the place of the same bytes, and mends them."""
        place = self._place(draft.sha256)
        place.parent.mkdir(mode=0o700, exist_ok=True)
        draft.path.replace(place)
        _sync(place.parent)
        _sync(self.path)

    def _place(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            # Damage in the database must not lead out of the directory.
            raise NotFound("what is known of this file is damaged")
        return self.path / sha256[:2] / sha256


class Draft:
    """A file on its way into a folder, under a name nobody else has. For one thread at a time."""

    def __init__(self, folder: Folder) -> None:
        self.path = folder.path / f"{secrets.token_hex(16)}{_DRAFT}"
        self.size_bytes = 0
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None

    @property
    def sha256(self) -> str:
        """The hash of what was written."""
        return self._hash.hexdigest()

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._opened().write(data)
        self._hash.update(data)
        self.size_bytes += len(data)

    def finish(self) -> None:
        """Make the bytes durable."""
        file = self._opened()
        file.flush()
        os.fsync(file.fileno())
        file.close()

    def discard(self) -> None:
        """Leave nothing of the draft; if it became a file, that file stays. What cannot be removed is swept later."""
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self.path.unlink()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self.path, flags, 0o600), "wb")
        return self._file


def _old_files(folder: Path, before: float) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            # Another process may have taken it away since.
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime <= before:
                    yield entry.name


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
