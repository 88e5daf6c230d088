"""Turns and deliveries at work, and their end in good order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from loguru import logger

from gateway.app.core import Core
from gateway.ports.wakeups import Topic


@asynccontextmanager
async def working(core: Core) -> AsyncIterator[None]:
    """Run turns and deliveries beside the body; when it ends, let what runs finish within the drain time."""
    handlers = {Topic.SESSION: core.dispatcher.drive, Topic.LANE: core.lanes.work, Topic.TITLE: core.titler.title}
    tasks = [
        asyncio.create_task(core.wakeups.run(handlers), name="wakeups"),
        asyncio.create_task(core.sweep.run(), name="sweep"),
    ]
    try:
        yield
        await _drain(core)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _drain(core: Core) -> None:
    core.dispatcher.drain()
    with suppress(TimeoutError):
        async with asyncio.timeout(core.settings.gateway.drain_seconds):
            await core.wakeups.idle()
            logger.info("all turns and deliveries have finished")
            return
    logger.warning("stopping with turns unfinished; they go on at the next start")
