"""The wire of the loopback Telegram: how parameters come in, and how an answer goes out, or breaks off."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from tests.loopback.telegram_rules import Refusal


async def params_of(request: web.Request) -> dict[str, str]:
    """Read parameters from wherever the Bot API takes them: the query, a form, or JSON."""
    params = dict(request.query)
    if request.content_type == "application/json":
        body = await request.json()
        return {**params, **{name: _as_text(value) for name, value in body.items()}}
    form = await request.post()
    return {**params, **{name: value for name, value in form.items() if isinstance(value, str)}}


def refuse(refusal: Refusal) -> web.Response:
    """Answer that it is not done, and why."""
    return web.json_response(refusal.body(), status=refusal.code)


async def half(request: web.Request, content: bytes) -> web.StreamResponse:
    """Send half of a file, and hang up."""
    response = web.StreamResponse(headers={"Content-Length": str(len(content))})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    hang_up(request)
    return response


def hang_up(request: web.Request) -> web.Response:
    """Break the connection; what is returned reaches nobody."""
    if request.transport:
        request.transport.abort()
    return web.Response()


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
