"""Tasks that were cancelled and do not end: somebody has to own them, and nobody may wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from loguru import logger

from gateway.ports.clock import Clock

GRACE_SECONDS = 5.0
"""How long a task that was cancelled is waited for."""


class Strays:
    """Cancels tasks, and keeps those that do not obey until they end or the process does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def cancel(self, tasks: Collection[asyncio.Task[None]]) -> None:
        """Cancel tasks and wait until they have ended, but no longer than they are given."""
        for task in tasks:
            # Whoever waits here may be cancelled too; from now on they are ours.
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.cancel()
        for task in await self._unended(tasks):
            logger.bind(task=task.get_name()).error("a task does not end although it was cancelled")

    async def close(self) -> None:
        """Cancel once more what has not ended, and leave what does not obey to the end of the process."""
        await self.cancel(set(self._tasks))

    async def _unended(self, tasks: Collection[asyncio.Task[None]]) -> Collection[asyncio.Task[None]]:
        left = {task for task in tasks if not task.done()}
        if not left:
            return left
        timer = asyncio.create_task(self._clock.sleep(GRACE_SECONDS), name="grace")
        try:
            while left and not timer.done():
                await asyncio.wait({*left, timer}, return_when=asyncio.FIRST_COMPLETED)
                left = {task for task in left if not task.done()}
        finally:
            timer.cancel()
            await asyncio.gather(timer, return_exceptions=True)
        return left
