"""Showing in a chat that the bot has heard and is at work, until it no longer is.

One keeper a session makes all its calls, one after the other, so that the last one is always the one that clears: no
late "typing" can follow it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from loguru import logger

from gateway.domain.errors import AuthFailed, NotDone, TrunklineError
from gateway.domain.keys import Route
from gateway.ports.channel import Channel, Presence
from gateway.ports.clock import Clock
from gateway.turns.breaks import Breaks, Broken, Why

SPACING = timedelta(milliseconds=100)
"""Between two calls of one channel: platforms bound all calls of a bot together, and answers come first."""
MOST_BEHIND = timedelta(seconds=2)
"""A sign that would come later than this is left out; the next one is not far."""
SHARE = 0.8
"""Of the time that a platform shows a sign for; then it is renewed."""
PAUSE = timedelta(minutes=10)
"""How long a channel that does not let us show anything is left alone."""


@dataclass(slots=True)
class _Sign:
    route: Route
    is_wanted: bool = True
    breaks: Breaks = field(default_factory=Breaks)


class Attention:
    """Keeps the signs of all sessions; owns the tasks that do."""

    def __init__(self, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._signs: dict[str, _Sign] = {}
        self._keepers: set[asyncio.Task[None]] = set()
        self._not_before: dict[str, datetime] = {}

    def working(self, session_id: str, route: Route) -> None:
        """Show that the bot is at work for a session; nothing happens where that is shown already."""
        if (sign := self._signs.get(session_id)) is not None:
            sign.route, sign.is_wanted = route, True
            return
        channel = self._channels.get(route.channel)
        if channel is None or not channel.capabilities.presence_seconds:
            return
        sign = self._signs[session_id] = _Sign(route)
        keeper = asyncio.create_task(self._keep(session_id, sign, channel), name=f"presence {session_id}")
        self._keepers.add(keeper)
        keeper.add_done_callback(self._keepers.discard)

    def idle(self, session_id: str) -> None:
        """Clear what is shown for a session, soon; whatever the keeper is just doing comes before it."""
        if (sign := self._signs.get(session_id)) is not None:
            sign.is_wanted = False
            sign.breaks.ask(Why.LOOK)

    async def close(self) -> None:
        """Clear everything and wait until that is done."""
        for session_id in list(self._signs):
            self.idle(session_id)
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, session_id: str, sign: _Sign, channel: Channel) -> None:
        shows = False
        try:
            while True:
                if sign.is_wanted:
                    shows = await self._show(channel, sign.route) or shows
                    await self._wait(sign, channel)
                elif shows:
                    shows = False
                    await self._call(channel, sign.route, Presence.IDLE)
                else:
                    return
        finally:
            del self._signs[session_id]

    async def _wait(self, sign: _Sign, channel: Channel) -> None:
        try:
            async with sign.breaks.step():
                await self._clock.sleep(channel.capabilities.presence_seconds * SHARE)
        except Broken:
            sign.breaks.looked()

    async def _show(self, channel: Channel, route: Route) -> bool:
        """Show the sign if the channel may be called now or soon; return whether it was called."""
        now = self._clock.now()
        turn = max(self._not_before.get(channel.name, now), now)
        if turn - now > MOST_BEHIND:
            return False
        self._not_before[channel.name] = turn + SPACING
        await self._clock.sleep((turn - now).total_seconds())
        await self._call(channel, route, Presence.WORKING)
        return True

    async def _call(self, channel: Channel, route: Route, state: Presence) -> None:
        """Call the platform; nothing depends on it, so that a failure only means to leave it alone for a while."""
        try:
            await channel.presence(route, state)
        except TrunklineError as error:
            logger.bind(channel=channel.name, chat=route.chat_id, error=str(error)).debug("presence was not shown")
            self._pause(channel.name, error)
        except Exception:  # the supervised boundary of a sign: a fault in it must not leave another one standing
            logger.bind(channel=channel.name).exception("presence failed by a fault of ours")

    def _pause(self, channel: str, error: TrunklineError) -> None:
        wait = timedelta()
        if isinstance(error, AuthFailed):
            wait = PAUSE
        elif isinstance(error, NotDone) and error.retry_after is not None:
            wait = timedelta(seconds=error.retry_after)
        until = self._clock.now() + wait
        self._not_before[channel] = max(self._not_before.get(channel, until), until)
