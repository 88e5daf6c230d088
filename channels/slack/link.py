"""One Socket Mode connection, from hello to its end.

slack_sdk's own loops never end: they repeat a refused token for ever, leave tasks that nobody awaits, and notice a
dropped socket only at the next ping. This is the same client with loops that end and tasks that are awaited; who owns
it opens another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import WSMsgType
from loguru import logger
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from channels.slack.api import SlackApi, wire_logger
from gateway.domain.errors import Unavailable
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals

CLOSE_SECONDS = 2
GRACE_SECONDS = 5
"""How long events in hand may take to be stored and acknowledged when their connection is given up."""

Handle = Callable[["Link", SocketModeRequest], Awaitable[None]]


class Link(SocketModeClient):
    """One connection. `reason` says how it ended: Slack's word in a `disconnect`, or `lost`."""

    def __init__(self, api: SlackApi, clock: Clock, vitals: Vitals, handle: Handle) -> None:
        super().__init__(
            app_token="",
            web_client=api.client,
            logger=wire_logger(),
            auto_reconnect_enabled=False,
            ping_interval=api.patience.ping_seconds,
        )
        self.proxy = api.client.proxy
        self.reason = ""
        self._api = api
        self._clock = clock
        self._vitals = vitals
        self._handle = handle
        self._greeted = asyncio.Event()
        self._over = asyncio.Event()
        self._in_hand: set[asyncio.Task[None]] = set()

    async def process_messages(self) -> None:
        """End at once: the queue of the library is not used, each envelope gets a task that is awaited."""

    async def connect(self) -> None:
        """Connect once and wait for Slack's hello; raises `AuthFailed` or `Unavailable`."""
        url = await self._api.socket_url()
        try:
            async with asyncio.timeout(self._api.patience.connect_seconds):
                self.current_session = await self.aiohttp_client_session.ws_connect(
                    url,
                    autoping=False,
                    heartbeat=self._api.patience.ping_seconds,
                    proxy=self.proxy,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
                self.message_receiver = asyncio.create_task(self.receive_messages())
                await self._greeted.wait()
        except (aiohttp.ClientError, TimeoutError) as error:
            # The cause is left out: its text holds the address, and that holds the ticket to the connection.
            raise Unavailable(f"Slack's socket did not open ({type(error).__name__})") from None
        if self._over.is_set():
            raise Unavailable(f"Slack's socket closed at once ({self.reason})")

    async def receive_messages(self) -> None:
        """Read frames until the connection is over."""
        session = self.current_session
        assert session is not None
        try:
            while await self._read(session):
                self._vitals.alive(self._clock.now())
        except ConnectionError as error:
            logger.bind(error=type(error).__name__).debug("the socket broke")
        finally:
            self._end("lost")

    async def over(self) -> None:
        """Return once the connection has ended or is about to."""
        await self._over.wait()

    async def retire(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Let events in hand be acknowledged, for a while, then close."""
        if self._in_hand:
            await asyncio.wait(self._in_hand, timeout=grace_seconds)
        await self.close()

    async def close(self) -> None:
        """Close the socket; afterwards no task is left, and what was in hand is not acknowledged."""
        self.closed = True
        tasks = [*self._in_hand, self.message_processor, *([self.message_receiver] if self.message_receiver else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self.current_session is not None:
            await self.current_session.close()
        await self.aiohttp_client_session.close()

    async def send_message(self, message: str) -> None:
        """Send on this connection only; Slack sends an event again whose answer is lost."""
        assert self.current_session is not None
        await self.current_session.send_str(message)

    async def _read(self, session: aiohttp.ClientWebSocketResponse) -> bool:
        """Read one frame; return whether the connection goes on."""
        frame = await session.receive()
        if frame.type is WSMsgType.TEXT:
            self._envelope(frame.data)
        elif frame.type is WSMsgType.PING:
            await session.pong(frame.data)
        return frame.type in (WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.PING, WSMsgType.PONG)

    def _envelope(self, raw: str) -> None:
        """Act on one message of Slack; an envelope is handled in a task of its own."""
        message = _parsed(raw)
        if message.get("type") == "hello":
            self._greeted.set()
        elif message.get("type") == "disconnect":
            self._end(str(message.get("reason") or "disconnect"))
        elif message.get("envelope_id"):
            task = asyncio.create_task(self._take(message))
            self._in_hand.add(task)
            task.add_done_callback(self._in_hand.discard)

    async def _take(self, message: dict[str, Any]) -> None:
        """Handle one envelope; the one boundary of its task, so a fault costs this event and is not acknowledged."""
        if not isinstance(message.get("payload"), dict):
            message = {**message, "payload": {}}
        request = SocketModeRequest.from_dict(message)
        try:
            if request is not None:
                await self._handle(self, request)
        except Exception as error:
            self._vitals.count("unacknowledged")
            logger.bind(error=type(error).__name__).warning("an event was not acknowledged; Slack sends it again")

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._over.set()
        # Wakes a connect that still waits for a hello that will not come.
        self._greeted.set()


def _parsed(raw: str) -> dict[str, Any]:
    try:
        message = json.loads(raw)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}
