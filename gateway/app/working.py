"""Turns and deliveries at work, and their end in good order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from loguru import logger

from gateway.app.core import Core
from gateway.ports.wakeups import Topic


@asynccontextmanager
async def working(core: Core) -> AsyncIterator[asyncio.Event]:
    """Run turns and deliveries beside the body; when it ends, let what runs finish within the drain time.

    Yields an event that is set if that work ends by itself, which it never should: a gateway that takes messages in and
    does not answer must not go on. The fault is then raised at the end of the body.
    """
    fallen = asyncio.Event()
    handlers = {
        Topic.SESSION: core.dispatcher.drive,
        Topic.LANE: core.lanes.work,
        Topic.TITLE: core.titler.title,
    }
    tasks = [
        asyncio.create_task(core.wakeups.run(handlers), name="wakeups"),
        asyncio.create_task(core.sweep.run(), name="sweep"),
    ]
    for task in tasks:
        task.add_done_callback(lambda _: fallen.set())
    try:
        yield fallen
        if not fallen.is_set():
            await _drain(core)
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await core.attention.close()
        await core.strays.close()


async def first(*work: Coroutine[Any, Any, None]) -> None:
    """Return when the first of these ends, or raise what it raised; the others are cancelled and awaited."""
    tasks = [asyncio.create_task(coroutine, name=getattr(coroutine, "__qualname__", None)) for coroutine in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def until(event: asyncio.Event) -> None:
    """Return once the event is set."""
    await event.wait()


async def _drain(core: Core) -> None:
    core.dispatcher.drain()
    with suppress(TimeoutError):
        async with asyncio.timeout(core.settings.gateway.drain_seconds):
            await core.wakeups.idle()
            logger.info("all turns and deliveries have finished")
            return
    logger.warning("stopping with turns unfinished; they go on at the next start")
