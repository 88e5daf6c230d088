"""The web application: is the process alive, is it ready, and the addresses that platforms call.

FastAPI is loaded when an application is made, since only a process that serves needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from loguru import logger

from gateway.domain.redaction import redact
from gateway.ports.channel import Health, HttpRequest, HttpRoute

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY_BYTES = 1024 * 1024
BODY_SECONDS = 30.0
"""How long a request may take to arrive; a platform's does in one piece."""

Endpoint = Callable[["Request"], Awaitable["Response"]]


def create_web(
    *,
    health: Callable[[], Mapping[str, Health]],
    ready: Callable[[], str | None],
    routes: Mapping[str, Sequence[HttpRoute]],
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """Return the application.

    `health` tells of each channel that is to be heard, `ready` what else is missing (None if nothing is), and `routes`
    holds each channel's own addresses, mounted at `/channels/{channel}{path}`. A channel that has ended by itself, as a
    terminal does, is simply absent from `health`.
    """
    from fastapi import FastAPI

    # Nothing about the inside is offered to whoever finds the port.
    app = FastAPI(title="Trunkline", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_route("/live", _live, ["GET", "HEAD"])
    app.add_route("/ready", _ready(health, ready), ["GET", "HEAD"])
    for channel, own in routes.items():
        for route in own:
            app.add_route(f"/channels/{channel}{route.path}", _mounted(channel, route, body_seconds), [route.method])
    return app


async def _live(_: Request) -> Response:
    """Answer that the loop runs, which is all that an answer says."""
    from starlette.responses import JSONResponse

    return JSONResponse({"status": "live"})


def _ready(health: Callable[[], Mapping[str, Health]], ready: Callable[[], str | None]) -> Endpoint:
    async def answer(_: Request) -> Response:
        from starlette.responses import JSONResponse

        body = readiness(health(), ready())
        return JSONResponse(body, 200 if body["status"] == "ready" else 503)

    return answer


def readiness(health: Mapping[str, Health], missing: str | None) -> dict[str, Any]:
    """Return what `/ready` says: every channel when all is well, else what is missing and which channels are deaf."""
    deaf = {name: state for name, state in health.items() if not state.receiving}
    if missing is None and not deaf:
        return {"status": "ready", "channels": {name: _shown(state) for name, state in health.items()}}
    body: dict[str, Any] = {"status": "not ready", "channels": {name: _shown(state) for name, state in deaf.items()}}
    return body if missing is None else {**body, "reason": redact(missing, ())}


def _shown(state: Health) -> dict[str, Any]:
    return {
        "receiving": state.receiving,
        # A channel's detail holds no secret; this is the second lock on the same door.
        "detail": redact(state.detail, ()),
        "last_inbound": _moment(state.last_inbound),
        "last_outbound": _moment(state.last_outbound),
        "last_alive": _moment(state.last_alive),
    }


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _mounted(channel: str, route: HttpRoute, body_seconds: float) -> Endpoint:
    async def answer(request: Request) -> Response:
        from starlette.responses import Response

        body = await _body(request, body_seconds)
        if isinstance(body, Response):
            return body
        headers = {name: ", ".join(request.headers.getlist(name)) for name in request.headers}
        asked = HttpRequest(headers=headers, query=request.url.query, body=body)
        try:
            told = await route.handle(asked)
        except Exception:  # The one boundary around code that a platform's request reaches; it is told nothing of it.
            logger.bind(channel=channel, path=route.path).exception("a request from the platform failed")
            return Response("try again later\n", 503, media_type="text/plain")
        return Response(told.body, told.status, dict(told.headers))

    return answer


async def _body(request: Request, seconds: float) -> bytes | Response:
    """Return the raw body, or the refusal of one that is too large, too slow or cut off."""
    from starlette.requests import ClientDisconnect
    from starlette.responses import Response

    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    return Response("the body is larger than 1 MiB\n", 413, {"connection": "close"}, "text/plain")
    except TimeoutError:
        return Response("the body did not arrive\n", 408, {"connection": "close"}, "text/plain")
    except ClientDisconnect:
        return Response(status_code=400)
    return bytes(body)
