"""The HTTP clients of one bot, and the one place where its token meets a URL.

Telegram wants the token in the path of each address, and both httpx and python-telegram-bot log addresses and put them
into errors. So the libraries are given a stand-in, `123456:hidden`, and the transport writes the token in its place as
the last thing before the wire. What no library knows, none can log.
"""

from __future__ import annotations

import json
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
from telegram.error import NetworkError, TelegramError
from telegram.request import HTTPXRequest, RequestData

from channels.telegram.options import TelegramOptions

CONNECT_SECONDS = 10.0
READ_SECONDS = 20.0
CALL_SECONDS = 45.0
"""The end of any call; longer than all its steps together, so that a step's own error, which says more, comes first."""


class Limited(TelegramError):
    """Telegram asked us to wait, for `seconds` if it said how long.

    In place of the library's `RetryAfter`, whose wait is a number or a timedelta by a variable of the environment, and
    which warns of that each time.
    """

    __slots__ = ("seconds",)

    def __init__(self, seconds: float | None) -> None:
        super().__init__("too many requests")
        self.seconds = seconds


class Wire:
    """Makes the clients through which one bot is reached."""

    def __init__(self, options: TelegramOptions) -> None:
        self._options = options
        self.stand_in = f"{options.bot_id}:hidden"
        self.base_url = f"{options.api_url}/bot"
        self.file_url = f"{options.api_url}/file/bot"

    def request(self, *, connections: int) -> HTTPXRequest:
        """Return a new pool for python-telegram-bot; the caller shuts it down."""
        return _Request(self._token, self._transport(connections))

    def files(self) -> httpx.AsyncClient:
        """Return a new client that downloads; the caller closes it."""
        timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        return httpx.AsyncClient(transport=self._transport(8), timeout=timeout)

    @property
    def _token(self) -> str:
        return self._options.bot_token.get_secret_value()

    def _transport(self, connections: int) -> _TokenTransport:
        return _TokenTransport(self.stand_in, self._token, _proxy(self._options.api_url), connections)


class _TokenTransport(httpx.AsyncHTTPTransport):
    """Writes the token where the stand-in is."""

    def __init__(self, stand_in: str, token: str, proxy: str | None, connections: int) -> None:
        super().__init__(proxy=proxy, limits=httpx.Limits(max_connections=connections))
        self._stand_in = f"/bot{stand_in}/".encode()
        self._real = f"/bot{token}/".encode()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        # The real address is never a variable: tracebacks that show values would show it.
        return await super().handle_async_request(self._with_token(request))

    def _with_token(self, request: httpx.Request) -> httpx.Request:
        return httpx.Request(
            request.method,
            request.url.copy_with(raw_path=request.url.raw_path.replace(self._stand_in, self._real, 1)),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )


class _Request(HTTPXRequest):
    """A pool of connections that takes the token out of refusals which repeat it."""

    def __init__(self, token: str, transport: httpx.AsyncHTTPTransport) -> None:
        super().__init__(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            write_timeout=READ_SECONDS,
            pool_timeout=5.0,
            httpx_kwargs={"transport": transport},
        )
        self._secret = token.encode()

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *args: object, **options: object
    ) -> tuple[int, bytes]:
        code, payload = await super().do_request(url, method, request_data, *args, **options)  # type: ignore[arg-type]
        if code == 429:
            raise Limited(_retry_after(payload))
        if code >= 500:
            # The library would log the whole page with a traceback, and a wake of pages while Telegram is away.
            raise NetworkError(f"status {code}")
        # A refusal of a proxy may name the address it was asked for; python-telegram-bot puts it into its error.
        return code, payload if code < 300 else payload.replace(self._secret, b"[token]")


def _retry_after(payload: bytes) -> float | None:
    try:
        return max(0.0, float(json.loads(payload)["parameters"]["retry_after"]))
    except (ValueError, LookupError, TypeError):
        return None


def _proxy(url: str) -> str | None:
    """Return the proxy of the environment for an address; httpx looks for none once it is given a transport."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")
