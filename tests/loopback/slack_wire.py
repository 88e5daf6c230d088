"""The wire of the loopback Slack: how arguments come in."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

_NESTED = ("metadata", "blocks")


def token_of(request: web.Request) -> str:
    """Return the token in a request's header."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


async def arguments_of(request: web.Request) -> dict[str, Any]:
    """Return a call's arguments from its query, form or JSON body; JSON inside a form is read too."""
    args: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        return args | await request.json()
    for name, value in (await request.post()).items():
        args[name] = json.loads(value) if name in _NESTED and isinstance(value, str) else value
    return args
