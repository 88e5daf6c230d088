"""`trunkline run`: all channels, the HTTP server, and an ending in good order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from loguru import logger

from gateway.app.core import Core, lock_path, open_core
from gateway.app.locks import only_process
from gateway.config.settings import Settings
from gateway.domain.policy import Rules
from gateway.ports.channel import Channel
from gateway.ports.wakeups import Topic
from gateway.web.app import create_web
from gateway.web.server import serve

PROCESS = "gateway"


async def run_gateway(
    settings: Settings,
    channels: Mapping[str, Channel],
    *,
    environment: Mapping[str, str],
    stop: asyncio.Event,
    started: Callable[[Core, str | None], None],
    extra_rules: Mapping[str, Rules] | None = None,
) -> None:
    """Run until `stop` is set, then end in good order. `started` is told the address of the HTTP server, if there is one."""
    async with AsyncExitStack() as stack:
        stack.enter_context(only_process(lock_path(settings, PROCESS), "a gateway"))
        core = await stack.enter_async_context(
            open_core(settings, channels, name=PROCESS, environment=environment, extra_rules=extra_rules)
        )
        stack.push_async_callback(core.receivers.close)
        address = await _serve(stack, core, channels)
        async with working(core):
            receiving = asyncio.create_task(core.receivers.run(), name="receivers")
            started(core, address)
            await _until(stop, receiving)


@asynccontextmanager
async def working(core: Core) -> AsyncIterator[None]:
    """Run turns and deliveries beside the body; when it ends, let what runs finish within the drain time."""
    handlers = {Topic.SESSION: core.dispatcher.drive, Topic.LANE: core.lanes.work}
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


async def _until(stop: asyncio.Event, receiving: asyncio.Task[None]) -> None:
    """Wait for the stop, then take nothing more in. A receiver task that ends by itself does not stop the gateway."""
    try:
        await stop.wait()
        logger.info("stopping: nothing more is taken in")
    finally:
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)


async def _serve(stack: AsyncExitStack, core: Core, channels: Mapping[str, Channel]) -> str | None:
    http = core.settings.http
    if not http.enabled:
        return None
    routes = {name: channel.routes() for name, channel in channels.items()}
    web = create_web(health=core.receivers.health, routes=routes)
    port = await stack.enter_async_context(serve(web, http.host, http.port))
    return f"http://{http.host}:{port}"
