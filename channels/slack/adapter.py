"""The Slack channel: what the gateway's contract asks, put together from its halves."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime

from channels.slack.api import Patience, SlackApi
from channels.slack.events import KIND, Identity
from channels.slack.files import fetch
from channels.slack.options import SlackOptions
from channels.slack.receive import Receiver
from channels.slack.render import render
from channels.slack.send import Outlet
from gateway.domain.errors import AuthFailed, NotDone, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route, check_channel_name
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.ports.channel import Capabilities, Channel, Health, HttpRoute, Presence, Sink
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals

PATIENCE = Patience()


class SlackChannel(Channel):
    """One workspace, reached by Socket Mode and the Web API."""

    kind = KIND
    capabilities = Capabilities(find=True, edits=True, deletes=True, private_notes=True, presence_seconds=100)

    def __init__(self, name: str, options: SlackOptions, clock: Clock, *, patience: Patience = PATIENCE) -> None:
        self.name = check_channel_name(name)
        self._options = options
        self._patience = patience
        self._clock = clock
        self._vitals = Vitals()
        self._api: SlackApi | None = None
        self._who: Identity | None = None

    async def open(self) -> None:
        """Make clients and ask Slack who the bot is."""
        if self._api is not None:
            return
        api = SlackApi(self._options, self._patience)
        async with AsyncExitStack() as undo:
            undo.push_async_callback(api.close)
            await api.open()
            self._who = await _identity(api)
            undo.pop_all()
        self._api = api

    async def close(self) -> None:
        """Close the clients."""
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def receive(self, sink: Sink) -> None:
        """Bring events in until cancelled."""
        api, who = self._opened()
        await Receiver(self.name, api, who, self._clock, self._vitals, sink).run()

    def routes(self) -> Sequence[HttpRoute]:
        """Return none: Socket Mode calls out and is never called."""
        return ()

    def render(self, outbound: Outbound) -> Sequence[Part]:
        """Return the message in parts of native Markdown."""
        return render(outbound)

    async def presence(self, route: Route, state: Presence) -> None:
        """Show a status line in a thread."""
        await self._outlet().show_presence(route, state)

    async def answer(self, choice: Inbound, reply: str) -> None:
        """Tell the person who picked, privately."""
        await self._outlet().say_privately(choice, reply)
        self._vitals.went_out(self._clock.now())

    def fetch(self, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a file."""
        return fetch(self._opened()[0], self._options, ref, max_bytes)

    def health(self) -> Health:
        """Return what was seen."""
        return self._vitals.health(self._clock.now())

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        """Show a new message."""
        ref = await self._outlet().post(to, part, key)
        self._vitals.went_out(self._clock.now())
        return ref

    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str, live: bool) -> Ref:
        """Replace what a message shows."""
        shown = await self._outlet().put(to, ref, part, old, key)
        self._vitals.went_out(self._clock.now())
        return shown

    async def drop(self, to: Route, ref: Ref) -> None:
        """Delete a message."""
        await self._outlet().drop(to, ref)
        self._vitals.went_out(self._clock.now())

    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        """Look in the chat, or the thread, for the message that carries `key`."""
        return await self._outlet().find(to, key, since, known)

    def _opened(self) -> tuple[SlackApi, Identity]:
        if self._api is None or self._who is None:
            raise RuntimeError("the Slack channel is not open")
        return self._api, self._who

    def _outlet(self) -> Outlet:
        return Outlet(*self._opened())


async def _identity(api: SlackApi) -> Identity:
    """Ask Slack whose token this is; raises `AuthFailed` or `Unavailable`."""
    try:
        told = await api.read("auth.test")
    except NotDone as error:
        raise Unavailable(f"Slack did not say who the bot is: {error.code}") from error
    facts = [told.get(name) for name in ("user_id", "bot_id", "team_id")]
    if not all(isinstance(fact, str) and fact for fact in facts):
        raise AuthFailed("Slack does not take this token for a bot's: use the Bot User OAuth Token (xoxb-…)")
    user_id, bot_id, team_id = map(str, facts)
    return Identity(user_id=user_id, bot_id=bot_id, team_id=team_id)
