"""What the web application answers, asked over a real connection."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from gateway.ports.channel import Health, HttpRequest, HttpResponse, HttpRoute
from gateway.web.app import BODY_SECONDS, MAX_BODY_BYTES, create_web
from gateway.web.server import serve

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
TOKEN = "111:AAF-dk39sLkQwErTyUiOpAsDfGhJkLzXcV"


@asynccontextmanager
async def client(
    health: dict[str, Health] | None = None,
    ready: Callable[[], str | None] = lambda: None,
    routes: Sequence[HttpRoute] = (),
    body_seconds: float = BODY_SECONDS,
    around: Callable[[Any], Any] = lambda app: app,
) -> AsyncIterator[httpx.AsyncClient]:
    app = create_web(health=lambda: health or {}, ready=ready, routes={"slack": routes}, body_seconds=body_seconds)
    async with (
        serve(around(app), "127.0.0.1", 0) as port,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as asking,
    ):
        yield asking


class Watched:
    """An application, and when a request came to it and when the last one was done with."""

    def __init__(self) -> None:
        self.came = asyncio.Event()
        self.done = asyncio.Event()

    def __call__(self, app: Any) -> Any:
        async def run(scope: Any, receive: Any, send: Any) -> None:
            self.came.set()
            try:
                await app(scope, receive, send)
            finally:
                self.done.set()

        return run


async def echo(request: HttpRequest) -> HttpResponse:
    told = f"{request.headers['x-sign']}|{request.query}|".encode() + request.body
    return HttpResponse(status=202, body=told, headers={"x-told": "yes", "content-type": "text/weird"})


async def test_live_answers_whatever_the_channels_do() -> None:
    async with client({"slack": Health(receiving=False)}) as asking:
        answer = await asking.get("/live")
        assert (answer.status_code, answer.json()) == (200, {"status": "live"})
        assert (await asking.head("/live")).status_code == 200
        assert "server" not in answer.headers


async def test_ready_shows_every_channel_when_all_receive() -> None:
    async with client({"slack": Health(receiving=True, last_alive=NOON)}) as asking:
        answer = await asking.get("/ready")
    assert answer.status_code == 200
    assert answer.json()["channels"]["slack"]["last_alive"] == "2026-11-30T12:00:00+00:00"


async def test_ready_names_the_channel_that_is_deaf_and_since_when() -> None:
    health = {"slack": Health(receiving=True), "tg": Health(receiving=False, detail="bad token", last_inbound=NOON)}
    async with client(health) as asking:
        answer = await asking.get("/ready")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not ready",
        "channels": {
            "tg": {
                "receiving": False,
                "detail": "bad token",
                "last_inbound": "2026-11-30T12:00:00+00:00",
                "last_outbound": None,
                "last_alive": None,
            }
        },
    }


async def test_ready_says_what_else_is_missing_and_asks_anew_each_time() -> None:
    missing = ["draining", None]
    async with client({"slack": Health(receiving=True)}, lambda: missing.pop(0)) as asking:
        answer = await asking.get("/ready")
        told = {"status": "not ready", "channels": {}, "reason": "draining"}
        assert (answer.status_code, answer.json()) == (503, told)
        assert (await asking.get("/ready")).status_code == 200


async def test_a_channel_that_has_ended_is_not_missed() -> None:
    health = {"slack": Health(receiving=True), "console": Health(receiving=True)}
    async with client(health) as asking:
        del health["console"]
        answer = await asking.get("/ready")
    assert (answer.status_code, list(answer.json()["channels"])) == (200, ["slack"])


async def test_ready_shows_no_token_even_if_a_channel_did() -> None:
    async with client({"tg": Health(receiving=False, detail=f"/bot{TOKEN}/getMe 401")}, lambda: TOKEN) as asking:
        assert TOKEN not in (await asking.get("/ready")).text


async def test_a_channels_own_address_gets_the_raw_request_and_answers_in_its_words() -> None:
    async with client(routes=[HttpRoute(method="POST", path="/events", handle=echo)]) as asking:
        sent = {"X-Sign": "v0=abc"}
        answer = await asking.post("/channels/slack/events?a=1&b=%20", content=b"\x00raw\xff", headers=sent)
        assert (answer.status_code, answer.content) == (202, b"v0=abc|a=1&b=%20|\x00raw\xff")
        assert (answer.headers["x-told"], answer.headers["content-type"]) == ("yes", "text/weird")
        assert (await asking.get("/channels/slack/events")).status_code == 405
        assert (await asking.post("/channels/other/events")).status_code == 404


async def test_a_body_that_is_too_large_is_refused_before_the_channel_sees_it() -> None:
    seen: list[int] = []

    async def take(request: HttpRequest) -> HttpResponse:
        seen.append(len(request.body))
        return HttpResponse(status=200)

    async def pieces(total: int) -> AsyncIterator[bytes]:
        for _ in range(total // 65536):
            yield b"x" * 65536

    async with client(routes=[HttpRoute(method="POST", path="/e", handle=take)]) as asking:
        assert (await asking.post("/channels/slack/e", content=b"x" * MAX_BODY_BYTES)).status_code == 200
        assert (await asking.post("/channels/slack/e", content=b"x" * (MAX_BODY_BYTES + 1))).status_code == 413
        # Sent in pieces, it tells no length in front.
        assert (await asking.post("/channels/slack/e", content=pieces(MAX_BODY_BYTES + 65536))).status_code == 413
    assert seen == [MAX_BODY_BYTES]


async def test_a_body_that_never_arrives_is_given_up() -> None:
    async with client(routes=[HttpRoute(method="POST", path="/e", handle=echo)], body_seconds=0.05) as asking:
        reader, writer = await asyncio.open_connection("127.0.0.1", asking.base_url.port)
        writer.write(b"POST /channels/slack/e HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc")
        assert b" 408 " in await reader.readline()
        writer.close()
        await writer.wait_closed()


async def test_a_platform_that_hangs_up_in_the_middle_disturbs_nobody() -> None:
    seen: list[bytes] = []

    async def take(request: HttpRequest) -> HttpResponse:
        seen.append(request.body)
        return HttpResponse(status=200)

    watched = Watched()
    async with client(routes=[HttpRoute(method="POST", path="/e", handle=take)], around=watched) as asking:
        _, writer = await asyncio.open_connection("127.0.0.1", asking.base_url.port)
        writer.write(b"POST /channels/slack/e HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc")
        await watched.came.wait()
        writer.close()
        await watched.done.wait()
        assert (await asking.post("/channels/slack/e", content=b"whole")).status_code == 200
    assert seen == [b"whole"]


async def test_a_channel_that_fails_tells_the_platform_to_come_again_and_nothing_else() -> None:
    async def fail(request: HttpRequest) -> HttpResponse:
        raise RuntimeError(f"/srv/secret/path {TOKEN}")

    async with client(routes=[HttpRoute(method="POST", path="/e", handle=fail)]) as asking:
        answer = await asking.post("/channels/slack/e", content=b"{}")
    assert (answer.status_code, answer.text) == (503, "try again later\n")


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/"])
async def test_nothing_else_is_offered(path: str) -> None:
    async with client() as asking:
        assert (await asking.get(path)).status_code == 404


def test_reading_the_options_loads_no_web_library() -> None:
    code = "import sys, gateway.web.options, gateway.web.app; sys.exit('fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
