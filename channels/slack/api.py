"""One workspace's Web API: slack_sdk's client, with its faults turned into ours.

slack_sdk's default retry handler sends a call again when its answer was lost, silently, and so posts twice; here no
call is ever repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from channels.slack.failures import WIRE_ERRORS, failure, for_reading
from channels.slack.options import SlackOptions
from gateway.domain.errors import DeliveryError, NotDone, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How many seconds Slack gets: for a whole call, for a connection, and between two pings of a socket."""

    call_seconds: float = 30
    connect_seconds: float = 10
    ping_seconds: float = 10


def wire_logger() -> logging.Logger:
    """Return the logger given to Slack's libraries; at DEBUG they would print whole messages of people."""
    logger = logging.getLogger("channels.slack.wire")
    logger.setLevel(logging.WARNING)
    return logger


class SlackApi:
    """Calls Slack's Web API. `session` and `client` exist between `open` and `close`."""

    session: aiohttp.ClientSession
    client: AsyncWebClient

    def __init__(self, options: SlackOptions, patience: Patience) -> None:
        self.patience = patience
        self._options = options

    async def open(self) -> None:
        """Make the clients; calls nothing yet."""
        # The bound on connecting counts looking the name up and waiting for a free connection: then nothing was sent.
        timeout = aiohttp.ClientTimeout(total=self.patience.call_seconds, connect=self.patience.connect_seconds)
        self.session = aiohttp.ClientSession(timeout=timeout)
        self.client = self.new_client(self._options.bot_token.get_secret_value())

    async def close(self) -> None:
        """Close what `open` made."""
        await self.session.close()

    def new_client(self, token: str | None) -> AsyncWebClient:
        """Return a client on the shared session that never retries."""
        client = AsyncWebClient(
            token=token,
            base_url=self._options.api_url,
            session=self.session,
            retry_handlers=[],
            logger=wire_logger(),
        )
        # slack_sdk takes the proxy from the environment without looking at NO_PROXY.
        if proxy_bypass(urlsplit(self._options.api_url).hostname or ""):
            client.proxy = None
        return client

    async def write(self, method: str, **arguments: object) -> Mapping[str, Any]:
        """Make a call that changes something; raises `NotDone`, `Unknown`, `Gone` or `AuthFailed`."""
        return await self._call(method, json={name: value for name, value in arguments.items() if value is not None})

    async def read(self, method: str, **arguments: object) -> Mapping[str, Any]:
        """Make a call that changes nothing; raises `Unavailable` where trying again may help."""
        try:
            return await self._call(method, http_verb="GET", params=arguments)
        except DeliveryError as error:
            raise for_reading(method, error) from error

    async def socket_url(self) -> str:
        """Ask for the address of a new Socket Mode connection; it can be used once."""
        method = "apps.connections.open"
        try:
            answer = await self._call(method, params={"token": self._options.app_token.get_secret_value()})
        except NotDone as error:
            raise Unavailable(
                f"Slack did not open a connection: {error.code}", retry_after=error.retry_after
            ) from error
        except DeliveryError as error:
            raise Unavailable("Slack did not open a connection") from error
        return str(answer.get("url", ""))

    async def _call(self, method: str, **request: Any) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(self.patience.call_seconds):
                response = await self.client.api_call(method, **request)
        except WIRE_ERRORS as error:
            raise failure(method, error) from error
        return response.data if isinstance(response.data, dict) else {}
