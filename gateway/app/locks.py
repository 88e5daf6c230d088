"""One process per name on one store: a lock file that the system lets go of however its process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gateway.domain.errors import Unavailable


@contextmanager
def only_process(path: Path, what: str) -> Iterator[bool]:
    """Hold the lock file at `path` while the body runs; raise `Unavailable` naming the process that holds it.

    Yields whether the last holder ended without letting go of it, as a killed process does.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"cannot write beside the database: {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "another process"
            raise Unavailable(f"{what} is already running on {path.parent} as {holder}") from error
        # Who holds it is only a help to people: on a full disk the lock holds all the same.
        was_killed = os.fstat(descriptor).st_size > 0
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}\n".encode(), 0)
        yield was_killed
        os.ftruncate(descriptor, 0)
    finally:
        # The file stays: removing it would let two processes hold locks on two files of one name.
        os.close(descriptor)
