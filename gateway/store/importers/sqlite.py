"""Copying an SQLite file that another process may be writing to, with the journals it cannot be read without.

What is opened is the copy: SQLite writes beside a file even when it only reads it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOG = "-wal"
JOURNAL = "-journal"

# The journals first: what a clean end writes into the file and removes meanwhile is then there twice, not missing.
_PIECES = (LOG, JOURNAL, "")
_COPIES = 5


def copied(path: Path, folder: Path) -> Path:
    """Copy the file with its journals, again while it changes meanwhile, and return where the copy is."""
    for _ in range(_COPIES):
        before = _state(path)
        for piece in _PIECES:
            copy = folder / f"{path.name}{piece}"
            copy.unlink(missing_ok=True)
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{piece}", copy)
        if _state(path) == before:
            break
    return folder / path.name


def has_journals(path: Path) -> bool:
    """Return whether a journal lies beside the file, so that reading it would write."""
    return any(os.path.lexists(f"{path}{piece}") for piece in (LOG, JOURNAL))


def _state(path: Path) -> Sequence[tuple[int, int, int] | None]:
    return [_stamp(f"{path}{piece}") for piece in _PIECES]


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
