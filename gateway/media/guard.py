"""Keeps one process from removing bytes that another is just noting a row for.

Files and rows cannot change in one step. So whoever keeps a file holds a shared lock from before the file is in its
place until its row is committed, and whoever removes files holds an exclusive one from before asking whether they are
used until they are gone. The system lets go of both however a process ends.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gateway.media.blocking import blocking

_LOCK = ".lock"
_RETRY_SECONDS = 0.01


class Guard:
    """The locks on one folder. Enter them where no cancellation comes between: within `finished`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _LOCK

    @asynccontextmanager
    async def keeping(self) -> AsyncIterator[None]:
        """Let nobody remove files while the body runs; it waits for the moment somebody does."""
        lock = await self._shared()
        try:
            yield
        finally:
            os.close(lock)

    @asynccontextmanager
    async def removing(self) -> AsyncIterator[bool]:
        """Let nobody keep files while the body runs; yield False, and hold nothing, if somebody does."""
        lock = await blocking(self._try, fcntl.LOCK_EX)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                os.close(lock)

    async def _shared(self) -> int:
        # A thread that waits in the call would be one less for whoever is to let go.
        while True:
            if (lock := await blocking(self._try, fcntl.LOCK_SH)) is not None:
                return lock
            await asyncio.sleep(_RETRY_SECONDS)

    def _try(self, operation: int) -> int | None:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
