"""Downloading a file that came with a message.

Slack answers a request it will not serve with its sign-in page and status 200, so a page is never taken for the file.
The token goes to Slack's own hosts only, wherever an address or a redirect points.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import SplitResult, urljoin, urlsplit

import aiohttp

from channels.slack.api import SlackApi
from channels.slack.failures import seconds_to_wait
from channels.slack.options import SlackOptions
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.message import MediaRef

CHUNK_BYTES = 64 * 1024
STALL_SECONDS = 30
TOTAL_SECONDS = 600
REDIRECTS = 3
_SIGN_IN = "Slack sent its sign-in page instead of the file: add the scope files:read to the app and reinstall it"


async def fetch(api: SlackApi, options: SlackOptions, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the file's bytes; raises `Refused` for what is not the file or too large, `Unavailable` to try later."""
    if ref.size_bytes is not None and ref.size_bytes > max_bytes:
        raise _too_large(max_bytes, ref.size_bytes)
    headers = {"Authorization": f"Bearer {options.bot_token.get_secret_value()}"}
    timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, sock_connect=STALL_SECONDS, sock_read=STALL_SECONDS)
    url = ref.ref
    try:
        for _ in range(REDIRECTS + 1):
            check_host(url, options.api_url)
            async with api.session.get(
                url, headers=headers, timeout=timeout, allow_redirects=False, proxy=api.client.proxy
            ) as response:
                if response.status not in (301, 302, 303, 307, 308):
                    async for chunk in _body(response, ref, max_bytes):
                        yield chunk
                    return
                url = urljoin(url, response.headers.get("Location", ""))
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unavailable(f"the file could not be read from Slack ({type(error).__name__})") from error
    raise Refused("expected the file, got only redirects")


async def _body(response: aiohttp.ClientResponse, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
    _check_answer(response)
    length = response.content_length
    if length is not None and length > max_bytes:
        raise _too_large(max_bytes, length)
    total = 0
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        if total == 0 and _is_page(response.content_type, chunk) and not _is_wanted_page(ref, length):
            raise Refused(_SIGN_IN)
        total += len(chunk)
        if total > max_bytes:
            raise _too_large(max_bytes, total)
        yield chunk


def _check_answer(response: aiohttp.ClientResponse) -> None:
    status = response.status
    if status == 429 or status >= 500:
        wait = seconds_to_wait(response.headers) if status == 429 else None
        raise Unavailable(f"Slack did not send the file (HTTP {status})", retry_after=wait)
    if status in (401, 403):
        raise Refused(f"Slack refused the file (HTTP {status}): add the scope files:read to the app and reinstall it")
    if status != 200:
        raise Refused(f"expected the file, got HTTP {status}")


def _is_page(content_type: str, head: bytes) -> bool:
    start = head[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return content_type == "text/html" or start.startswith((b"<!doctype html", b"<html"))


def _is_wanted_page(ref: MediaRef, length: int | None) -> bool:
    """Tell whether a page is what was sent: then its size is the one the message told."""
    return ref.mime == "text/html" and ref.size_bytes is not None and length == ref.size_bytes


def check_host(url: str, api_url: str) -> None:
    """Refuse an address that is not Slack's: the API's own origin, or over https a host under its domain."""
    home = urlsplit(api_url)
    try:
        there = urlsplit(url)
        same = _origin(there) == _origin(home)
        under = (there.hostname or "").endswith(f".{home.hostname}") and there.port in (None, 443)
    except ValueError as error:
        raise Refused("expected the address of a file on Slack's own hosts") from error
    if not same and not (under and there.scheme == "https"):
        raise Refused(f"expected a file on Slack's own hosts, got one on {there.hostname or 'no host'}")


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port


def _too_large(max_bytes: int, size: int) -> Refused:
    return Refused(f"expected a file of at most {max_bytes} bytes, got {size}")
