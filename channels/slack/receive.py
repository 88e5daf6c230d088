"""The receiving half: Socket Mode through Bolt, acknowledged only once the sink has the event."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any
from weakref import WeakValueDictionary

from loguru import logger
from slack_bolt.adapter.socket_mode.async_base_handler import AsyncBaseSocketModeHandler
from slack_bolt.adapter.socket_mode.async_internals import run_async_bolt_app, send_async_response
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from channels.slack.api import SlackApi, wire_logger
from channels.slack.events import MALFORMED, Dropped, Identity, read_event
from channels.slack.link import Link
from gateway.domain.backoff import FIRST_SECONDS, backoff
from gateway.domain.errors import AuthFailed, Unavailable
from gateway.ports.channel import Sink
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals

LONGEST_WAIT_SECONDS = 30
STEADY_SECONDS = 30
"""A connection that lasted this long was a good one, and the next is opened at once."""


class Receiver(AsyncBaseSocketModeHandler):
    """Keeps one Socket Mode connection open and hands each event to a sink."""

    def __init__(self, name: str, api: SlackApi, who: Identity, clock: Clock, vitals: Vitals, sink: Sink) -> None:
        self._name = name
        self._api = api
        self._who = who
        self._clock = clock
        self._vitals = vitals
        self._sink = sink
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._links: list[Link] = []
        self._bolt = self._new_app(bot_token=api.client.token)
        self._bolt.event(re.compile(".*"))(self._listen)
        self._bolt.error(self._refuse)

    async def run(self) -> None:
        """Receive until cancelled; raises `AuthFailed` when only the owner can help."""
        short_lived = 0
        try:
            while True:
                opened = self._clock.now()
                retry_after = await self._one_connection()
                lasted = (self._clock.now() - opened).total_seconds()
                short_lived = 0 if lasted >= STEADY_SECONDS else short_lived
                wait = backoff(short_lived - 1, longest=LONGEST_WAIT_SECONDS) if short_lived else 0.0
                await self._clock.sleep(max(wait, retry_after))
                short_lived += 1
        finally:
            self._vitals.is_deaf("not receiving")
            await self.close_async()

    async def handle(self, client: AsyncBaseSocketModeClient, req: SocketModeRequest) -> None:
        """Answer one envelope: events through Bolt, and all else at once, so that Slack does not repeat it."""
        if _count(req.retry_attempt) > 0:
            # A repeat may be the first we see of an event: the socket was down when it was sent.
            self._vitals.count("retries_seen")
        reason = self._unfit(req)
        if reason is None:
            response = await run_async_bolt_app(self._bolt, req)
        else:
            self._vitals.count(f"dropped_{reason}")
            response = BoltResponse(status=200)
        await send_async_response(client, req, response, time.time())

    def _unfit(self, req: SocketModeRequest) -> str | None:
        """Return why an envelope is not for Bolt, which stumbles over what is malformed and answers no strangers."""
        if req.type != "events_api":
            return "not_an_event"
        return "malformed" if read_event(req.payload, self._who, self._name) == MALFORMED else None

    async def connect_async(self) -> None:
        """Open a connection beside the one that ends, then let that one go, so that no event falls between."""
        link = Link(self._api, self._clock, self._vitals, self.handle)
        self._links.append(link)
        try:
            await link.connect()
        except (AuthFailed, Unavailable):
            self._links.remove(link)
            await link.close()
            raise
        while self._links[0] is not link:
            await self._links[0].retire()
            del self._links[0]

    async def close_async(self) -> None:
        """Close every connection; no task is left."""
        while self._links:
            await self._links[-1].close()
            self._links.pop()

    async def _one_connection(self) -> float:
        """Live through one connection; return the least seconds to wait before the next."""
        try:
            await self.connect_async()
        except Unavailable as error:
            self._vitals.is_deaf(str(error))
            self._vitals.count("connect_failures")
            logger.bind(channel=self._name, error=str(error)).warning("Slack is not reachable")
            return max(error.retry_after or 0.0, FIRST_SECONDS)
        self._vitals.hears(self._clock.now())
        logger.bind(channel=self._name).info("receiving from Slack")
        link = self._links[-1]
        await link.over()
        self._vitals.is_deaf(f"reconnecting ({link.reason})")
        if link.reason == "link_disabled":
            raise AuthFailed("Socket Mode was turned off for this app: turn it on again under 'Socket Mode'")
        if link.reason == "too_many_websockets":
            # Here the next one can only come after this one has gone.
            await self.close_async()
        self._vitals.count("reconnects")
        return 0.0

    def _new_app(self, bot_token: str | None) -> AsyncApp:
        result = AuthorizeResult(
            enterprise_id=None,
            team_id=self._who.team_id,
            bot_token=bot_token,
            bot_id=self._who.bot_id,
            bot_user_id=self._who.user_id,
        )

        async def authorize() -> AuthorizeResult:
            """Return what `auth.test` told at the start, so that no event costs a call."""
            return result

        return AsyncApp(
            name=self._name,
            logger=wire_logger(),
            client=self._api.new_client(None),
            authorize=authorize,
            # Bolt would else acknowledge before the event is stored, and a crash between would lose it.
            process_before_response=True,
            request_verification_enabled=False,
            ssl_check_enabled=False,
            url_verification_enabled=False,
            attaching_function_token_enabled=False,
            attaching_conversation_kwargs_enabled=False,
            # Events of our own are dropped, and counted, with all the others.
            ignoring_self_events_enabled=False,
        )

    async def _listen(self, body: dict[str, Any]) -> None:
        """Hand one event to the sink, in the order of its chat."""
        inbound = read_event(body, self._who, self._name)
        if isinstance(inbound, Dropped):
            self._vitals.count(f"dropped_{inbound.reason}")
            return
        async with self._order.setdefault(inbound.route.chat_id, asyncio.Lock()):
            await self._sink(inbound)
        self._vitals.came_in(self._clock.now())

    async def _refuse(self, error: Exception) -> BoltResponse:
        """Leave the event unacknowledged, so that it comes again."""
        self._vitals.count("sink_failures")
        logger.bind(channel=self._name, error=type(error).__name__).warning("an event was not stored; it comes again")
        return BoltResponse(status=500)


def _count(value: object) -> int:
    text = str(value or 0)
    return int(text) if text.isdecimal() else 0
