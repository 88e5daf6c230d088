"""One Telegram bot as a channel of the gateway."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta

import httpx
from telegram import Bot
from telegram.request import HTTPXRequest

from channels.telegram import files
from channels.telegram.failures import asking
from channels.telegram.options import TelegramOptions
from channels.telegram.receive import GRACE_SECONDS, Poller
from channels.telegram.render import render
from channels.telegram.send import Messenger
from channels.telegram.wire import Wire
from channels.telegram.words import Me
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route, check_channel_name
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.ports.channel import Capabilities, Channel, Health, HttpRoute, Presence, Sink
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals


class TelegramChannel(Channel):
    """A bot that polls. Its two halves use separate pools of connections, so neither can starve the other."""

    kind = "telegram"
    capabilities = Capabilities(edits=True, deletes=True, presence_seconds=5)

    def __init__(self, name: str, options: TelegramOptions, clock: Clock) -> None:
        self.name = check_channel_name(name)
        self._options = options
        self._clock = clock
        self._wire = Wire(options)
        self._vitals = Vitals(stale_after=3 * timedelta(seconds=options.poll_seconds + GRACE_SECONDS))
        self._clients: _Clients | None = None

    async def open(self) -> None:
        """Make clients and ask Telegram who the bot is."""
        if self._clients is None:
            self._clients = await _Clients.open(self._wire)

    async def close(self) -> None:
        """Close what `open` made."""
        clients, self._clients = self._clients, None
        if clients:
            await clients.close()

    async def receive(self, sink: Sink) -> None:
        """Poll for updates until cancelled."""
        poller = Poller(
            channel=self.name,
            me=self._opened.me,
            wire=self._wire,
            poll_seconds=self._options.poll_seconds,
            clock=self._clock,
            vitals=self._vitals,
        )
        await poller.run(sink)

    def routes(self) -> Sequence[HttpRoute]:
        """Return nothing: Telegram is polled and calls no address of ours."""
        return ()

    def render(self, outbound: Outbound) -> Sequence[Part]:
        """Split and format a message."""
        return render(outbound)

    async def presence(self, route: Route, state: Presence) -> None:
        """Show "typing"; Telegram clears it by itself, after five seconds or with the next message."""
        if state is Presence.WORKING:
            await self._opened.messenger.show_typing(route)

    async def answer(self, choice: Inbound, reply: str) -> None:
        """Acknowledge a pressed button."""
        await self._opened.messenger.answer(choice, reply)

    async def fetch(self, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a file that came in."""
        clients = self._opened
        async with contextlib.aclosing(files.download(clients.bot, clients.files, ref, max_bytes)) as chunks:
            async for chunk in chunks:
                yield chunk

    def health(self) -> Health:
        """Return how the channel is."""
        return self._vitals.health(self._clock.now())

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        """Show a new message; Telegram carries no key."""
        ref = await self._opened.messenger.post(to, part)
        self._vitals.went_out(self._clock.now())
        return ref

    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str, live: bool) -> Ref:
        """Make the message show `part`."""
        ref = await self._opened.messenger.put(to, ref, part)
        self._vitals.went_out(self._clock.now())
        return ref

    async def drop(self, to: Route, ref: Ref) -> None:
        """Take the message away."""
        await self._opened.messenger.drop(to, ref)
        self._vitals.went_out(self._clock.now())

    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        """Refuse: a bot cannot ask Telegram for the messages of a chat."""
        raise Refused("expected a platform that can be asked for its messages, got telegram")

    @property
    def _opened(self) -> _Clients:
        if self._clients is None:
            raise Unavailable(f"the channel {self.name!r} is not open")
        return self._clients


class _Clients:
    """What is open between `open` and `close`."""

    def __init__(self, bot: Bot, request: HTTPXRequest, files: httpx.AsyncClient, me: Me) -> None:
        self.bot = bot
        self.files = files
        self.me = me
        self.messenger = Messenger(bot)
        self._request = request

    @classmethod
    async def open(cls, wire: Wire) -> _Clients:
        """Make clients; `Bot.initialize` is not used, for it puts the token into an error's text."""
        async with contextlib.AsyncExitStack() as stack:
            request = wire.request(connections=16)
            stack.push_async_callback(request.shutdown)
            files = await stack.enter_async_context(wire.files())
            bot = Bot(
                wire.stand_in,
                base_url=wire.base_url,
                base_file_url=wire.file_url,
                request=request,
                get_updates_request=request,
            )
            async with asking():
                user = await bot.get_me()
            stack.pop_all()
        return cls(bot, request, files, Me(id=user.id, username=user.username or ""))

    async def close(self) -> None:
        await self._request.shutdown()
        await self.files.aclose()
