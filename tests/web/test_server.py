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
from gateway.web import server as web_server
from gateway.web.server import bind, serve


async def hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/slow":
        await asyncio.sleep(float(scope["query_string"]))
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def fetch(port: int, path: str = "/") -> str:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(f"http://127.0.0.1:{port}{path}", timeout=10)).text


async def test_it_tells_the_port_it_is_bound_to_and_leaves_no_task() -> None:
    async with serve(hello, "127.0.0.1", 0) as port:
        assert await fetch(port) == "hello"
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with pytest.raises(httpx.ConnectError):
        await fetch(port)


async def test_it_leaves_signals_to_the_process() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    async with serve(hello, "127.0.0.1", 0):
        assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


async def test_a_port_in_use_is_named_by_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"http\.port: {port} on 127\.0\.0\.1 is in use") as caught:
            async with serve(hello, "127.0.0.1", port):
                pass
    assert caught.value.setting == "http.port"


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid", "not an address"])
def test_an_address_that_is_not_ours_is_named_by_its_setting(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^http\.host: "):
        bind(host, 0)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine speaks one protocol only")
async def test_all_addresses_are_those_of_both_protocols() -> None:
    async with serve(hello, "::", 0) as port:
        assert await fetch(port) == "hello"


async def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: object, sockets: object = None) -> None:
        raise OSError("no more descriptors")

    monkeypatch.setattr("uvicorn.Server.startup", broken)
    with pytest.raises(OSError, match="no more descriptors"):
        async with serve(hello, "127.0.0.1", 0):
            pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_a_port_that_needs_rights_is_named_by_its_setting() -> None:
    # As root every port may be had, so what the system says to others is handed in.
    error = web_server.explained(PermissionError(errno.EACCES, "Permission denied"), "127.0.0.1", 1)
    assert str(error).startswith("http.port: 1 needs rights")


async def test_what_is_being_answered_is_finished() -> None:
    async with serve(hello, "127.0.0.1", 0) as port:
        asking = asyncio.create_task(fetch(port, "/slow?0.3"))
        await asyncio.sleep(0.1)
    assert await asking == "hello"


async def test_what_takes_too_long_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "GRACE_SECONDS", 0.2)
    async with serve(hello, "127.0.0.1", 0) as port:
        asking = asyncio.create_task(fetch(port, "/slow?60"))
        await asyncio.sleep(0.1)
    await asyncio.wait([asking], timeout=5)
    assert asking.done()
    assert isinstance(asking.exception(), httpx.HTTPError) or asking.result() != "hello"
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_error_in_the_block_stops_the_server_and_is_raised() -> None:
    with pytest.raises(LookupError):
        async with serve(hello, "127.0.0.1", 0):
            raise LookupError
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_being_cancelled_stops_the_server() -> None:
    async def run() -> None:
        async with serve(hello, "127.0.0.1", 0):
            await asyncio.sleep(60)

    task = asyncio.create_task(run())
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}
