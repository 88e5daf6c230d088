"""Serving an application on uvicorn inside our own loop: no signal handlers, no exits, no task left behind."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn

from gateway.domain.errors import ConfigError

GRACE_SECONDS = 5
"""How long a stopping server lets requests finish that are being answered."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the process that owns it, and says when it has started."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def serve(app: Any, host: str, port: int, *, grace_seconds: int = GRACE_SECONDS) -> AsyncIterator[int]:
    """Serve the ASGI application while the block runs, and yield the port it is bound to.

    Raises `ConfigError` naming the setting if the address cannot be listened on. Leaving the block answers what is
    being asked, for `grace_seconds` at most (0: cuts it off), and closes everything.
    """
    listener = bind(host, port)
    server = _Server(_config(app, grace_seconds))
    task = asyncio.create_task(server.serve(sockets=[listener]), name="web server")
    try:
        await _started(server, task)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await _stopped(server, task, listener)


MOST_CONNECTIONS = 256
"""How many connections are served at once; more are answered with 503, so that they cannot starve the channels."""


def _config(app: Any, grace_seconds: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        # Our logs are set up already, and uvicorn's own set-up would write past their redaction.
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace_seconds,
        limit_concurrency=MOST_CONNECTIONS,
    )


async def _started(server: _Server, task: asyncio.Task[None]) -> None:
    up = asyncio.create_task(server.up.wait())
    try:
        await asyncio.wait([up, task], return_when=asyncio.FIRST_COMPLETED)
    finally:
        up.cancel()
        await asyncio.wait([up])
    if not server.up.is_set():
        # It ended, and says why.
        await task


async def _stopped(server: _Server, task: asyncio.Task[None], listener: socket.socket) -> None:
    try:
        await task
    finally:
        listener.close()
        # uvicorn cancels what outstays the grace, and does not wait for it.
        await asyncio.gather(*server.server_state.tasks, return_exceptions=True)


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on the address; raise `ConfigError` that says which half of it is wrong."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # All addresses of the new protocol mean all of the old one too, as operators expect.
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise explained(error, host, port) from error


def explained(error: OSError, host: str, port: int) -> ConfigError:
    """Return what an owner can do about an address that cannot be listened on."""
    if error.errno == errno.EADDRINUSE:
        return ConfigError("http.port", f"{port} on {host} is in use by another program; choose another port")
    if error.errno == errno.EACCES:
        return ConfigError("http.port", f"{port} needs rights this process does not have; choose one above 1023")
    return ConfigError("http.host", f"cannot listen on {host!r}: {error.strerror}")
