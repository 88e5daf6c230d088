"""`trunkline run`: all channels, the HTTP server, and an ending in good order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from loguru import logger

from gateway.app.core import GATEWAY, Core, lock_path, open_core
from gateway.app.locks import only_process
from gateway.app.working import first, until, working
from gateway.config.settings import Settings
from gateway.domain.policy import Rules
from gateway.ports.channel import Channel
from gateway.ports.tools import Tools
from gateway.web.app import create_web
from gateway.web.server import serve


async def run_gateway(
    settings: Settings,
    channels: Mapping[str, Channel],
    *,
    environment: Mapping[str, str],
    stop: asyncio.Event,
    started: Callable[[Core, str | None], None],
    ended: Callable[[str], None] = lambda name: None,
    extra_rules: Mapping[str, Rules] | None = None,
    tools: Tools | None = None,
) -> None:
    """Run until `stop` is set, then end in good order.

    `started` is told the HTTP server's address, if there is one; `ended` the name of a channel that has no more input.
    """
    async with AsyncExitStack() as stack:
        was_killed = stack.enter_context(only_process(lock_path(settings, GATEWAY), "a gateway"))
        core = await stack.enter_async_context(
            open_core(
                settings,
                channels,
                name=GATEWAY,
                environment=environment,
                ended=ended,
                extra_rules=extra_rules,
                mend=was_killed,
                tools=tools,
            )
        )
        address = await _serve(stack, core, channels)
        async with working(core) as fallen:
            started(core, address)
            await first(until(stop), until(fallen), _receive(core))
            logger.info("stopping: nothing more is taken in")


async def _receive(core: Core) -> None:
    """Receive on every channel. That all of them have ended, or are off, does not stop the gateway."""
    await core.receivers.run()
    await asyncio.get_running_loop().create_future()


async def _serve(stack: AsyncExitStack, core: Core, channels: Mapping[str, Channel]) -> str | None:
    http = core.settings.http
    if not http.enabled:
        return None
    routes = {name: channel.routes() for name, channel in channels.items()}
    web = create_web(health=core.receivers.health, ready=core.store.fault, routes=routes)
    port = await stack.enter_async_context(serve(web, http.host, http.port))
    return f"http://{http.host}:{port}"
