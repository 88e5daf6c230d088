"""How the server starts and stops inside our own process."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from typing import Any

import httpx
import pytest

from gateway.domain.errors import ConfigError
from gateway.web.server import bind, explained, serve


class Site:
    """An application that says hello, at `/slow` only once it may; `arrived` tells that it was asked there."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.may = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            self.arrived.set()
            await self.may.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
async def site() -> Site:
    return Site()


async def fetch(port: int, path: str = "/") -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://127.0.0.1:{port}{path}", timeout=10)).text


async def stopping(port: int) -> None:
    """Return once the server takes no more connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            return
        writer.close()
        await asyncio.sleep(0.01)


async def test_it_tells_the_port_it_is_bound_to_and_leaves_no_task(site: Site) -> None:
    async with serve(site, "127.0.0.1", 0) as port:
        assert await fetch(port) == "hello"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(httpx.ConnectError):
        await fetch(port)


async def test_it_leaves_signals_to_the_process(site: Site) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    async with serve(site, "127.0.0.1", 0):
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


async def test_a_port_in_use_is_named_by_its_setting(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"http\.port: {port} on 127\.0\.0\.1 is in use") as caught:
            async with serve(site, "127.0.0.1", port):
                pass
    assert caught.value.setting == "http.port"


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "not an address"])
def test_an_address_that_is_not_ours_is_named_by_its_setting(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^http\.host: "):
        bind(host, 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine speaks one protocol only")
async def test_all_addresses_are_those_of_both_protocols(site: Site) -> None:
    async with serve(site, "::", 0) as port:
        assert await fetch(port) == "hello"


async def test_a_server_that_cannot_start_says_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: object, sockets: object = None) -> None:
        raise OSError("no more descriptors")

    monkeypatch.setattr("uvicorn.Server.startup", broken)
    with pytest.raises(OSError, match="no more descriptors"):
        async with serve(site, "127.0.0.1", 0):
            pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_port_that_needs_rights_is_named_by_its_setting() -> None:
    # As root every port may be had, so what the system says to others is handed in.
    error = explained(PermissionError(errno.EACCES, "Permission denied"), "127.0.0.1", 1)
    assert str(error).startswith("http.port: 1 needs rights")


async def test_what_is_being_answered_is_finished(site: Site) -> None:
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        async with serve(site, "127.0.0.1", 0) as port:
            bound.set_result(port)
            await site.arrived.wait()

    serving = asyncio.create_task(run())
    port = await bound
    asking = asyncio.create_task(fetch(port, "/slow"))
    await stopping(port)
    site.may.set()
    assert await asking == "hello"
    await serving


async def test_what_takes_too_long_is_cut_off(site: Site) -> None:
    async with serve(site, "127.0.0.1", 0, grace_seconds=0) as port:
        asking = asyncio.create_task(fetch(port, "/slow"))
        await site.arrived.wait()
    await asyncio.wait([asking])
    assert isinstance(asking.exception(), httpx.HTTPError) or asking.result() != "hello"
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_in_the_block_stops_the_server_and_is_raised(site: Site) -> None:
    with pytest.raises(LookupError):
        async with serve(site, "127.0.0.1", 0):
            raise LookupError
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_being_cancelled_stops_the_server(site: Site) -> None:
    up = asyncio.Event()

    async def run() -> None:
        async with serve(site, "127.0.0.1", 0):
            up.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await up.wait()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
