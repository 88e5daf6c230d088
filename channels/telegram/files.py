"""Files that came with a message: asked for by id, and read as a stream that is cut off at a limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import quote

import httpx
from telegram import Bot

from channels.telegram.failures import asking
from channels.telegram.wire import READ_SECONDS
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.message import MediaRef

MOST_BYTES = 20_000_000
"""What the Bot API lets a bot download."""


async def download(bot: Bot, client: httpx.AsyncClient, ref: MediaRef, max_bytes: int) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a file; raise `Refused` for one that is too large or not there."""
    most = min(max_bytes, MOST_BYTES)
    _check(ref.size_bytes, most)
    async with asking():
        file = await bot.get_file(ref.ref)
    _check(file.file_size, most)
    if not file.file_path:
        raise Refused("expected a file that can be downloaded, got one without a path")
    try:
        async with client.stream("GET", _quoted(file.file_path)) as response:
            _accept(response)
            async for chunk in _limited(response, most):
                yield chunk
    except (httpx.HTTPError, TimeoutError) as error:
        raise Unavailable("telegram did not send the file") from error


async def _limited(response: httpx.Response, most: int) -> AsyncIterator[bytes]:
    got = 0
    chunks = response.aiter_bytes()
    while True:
        async with asyncio.timeout(2 * READ_SECONDS):
            chunk = await anext(chunks, None)
        if chunk is None:
            return
        got += len(chunk)
        _check(got, most)
        yield chunk


def _quoted(url: str) -> str:
    """Return the address of a file; Telegram puts the file's name into it without escaping it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(rest, safe='/:')}"


def _accept(response: httpx.Response) -> None:
    if response.status_code >= 500 or response.status_code == 429:
        raise Unavailable("telegram did not send the file")
    if response.status_code != 200:
        raise Refused(f"expected a file, got status {response.status_code}")


def _check(size: int | None, most: int) -> None:
    if size is not None and size > most:
        raise Refused(f"expected a file of at most {most:,} bytes, got at least {size:,}")
