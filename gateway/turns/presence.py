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

from gateway.domain.errors import AuthFailed, NotDone, TrunklineError, Unknown
from gateway.domain.keys import Route
from gateway.ports.channel import Channel, Presence
from gateway.ports.clock import Clock
from gateway.turns.breaks import Breaks, Broken, Why

SPACING = timedelta(milliseconds=100)
"""Between two calls of one channel: platforms bound all calls of a bot together, and answers come first."""
MOST_BEHIND = timedelta(seconds=2)
"""A sign that would come later than this is not worth a place in the line; it is tried again when there is one."""
SHARE = 0.8
"""Of the time that a platform shows a sign for; then it is renewed."""
RETRY_SECONDS = 4.0
PAUSE = timedelta(minutes=10)
"""How long a channel that does not let us show anything is left alone."""


@dataclass(slots=True)
class _Sign:
    route: Route
    is_wanted: bool = True
    fades_at: datetime | None = None
    """When the platform itself takes away what it shows; None where nothing is shown."""
    breaks: Breaks = field(default_factory=Breaks)


class Attention:
    """Keeps the signs of all sessions; owns the tasks that do."""

    def __init__(self, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._channels = channels
        self._clock = clock
        self._signs: dict[str, _Sign] = {}
        self._keepers: set[asyncio.Task[None]] = set()
        self._not_before: dict[str, datetime] = {}
        self._is_closing = False

    @property
    def shown(self) -> int:
        """How many sessions have a sign, or one that is about to be cleared."""
        return len(self._signs)

    def working(self, session_id: str, route: Route) -> None:
        """Show that the bot is at work for a session; nothing happens where that is shown already."""
        if (sign := self._signs.get(session_id)) is not None:
            sign.route, sign.is_wanted = route, True
            return
        channel = self._channels.get(route.channel)
        if channel is None or not channel.capabilities.presence_seconds or self._is_closing:
            return
        sign = self._signs[session_id] = _Sign(route)
        keeper = asyncio.create_task(self._keep(session_id, sign, channel), name=f"presence {session_id}")
        self._keepers.add(keeper)
        keeper.add_done_callback(self._keepers.discard)

    def idle(self, session_id: str) -> None:
        """Clear what is shown for a session, soon; whatever the keeper is just doing comes before it."""
        if (sign := self._signs.get(session_id)) is not None:
            sign.is_wanted = False
            sign.breaks.ask(Why.INPUT)

    async def close(self) -> None:
        """Clear what can be cleared now, and wait until that is done; the rest fades by itself."""
        self._is_closing = True
        for session_id in list(self._signs):
            self.idle(session_id)
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def _keep(self, session_id: str, sign: _Sign, channel: Channel) -> None:
        try:
            while sign.is_wanted or self._stands(sign):
                if sign.is_wanted:
                    await self._show(sign, channel)
                else:
                    await self._clear(sign, channel)
        finally:
            del self._signs[session_id]

    async def _show(self, sign: _Sign, channel: Channel) -> None:
        """Show the sign, or renew it, if the channel may be called soon; then wait until it is time for more."""
        seconds = self._wait_for(channel)
        if seconds <= MOST_BEHIND.total_seconds():
            await self._in_turn(sign, channel, seconds)
            if not sign.is_wanted:
                return
            if await self._call(channel, sign.route, Presence.WORKING):
                lasts = channel.capabilities.presence_seconds
                sign.fades_at = self._clock.now() + timedelta(seconds=lasts)
                seconds = lasts * SHARE
            else:
                seconds = max(self._wait_for(channel), RETRY_SECONDS)
        await self._rest(sign, seconds)

    async def _clear(self, sign: _Sign, channel: Channel) -> None:
        """Clear the sign when the channel may be called; what cannot be cleared before it fades is let fade."""
        seconds = self._wait_for(channel)
        sign.breaks.looked()
        most = MOST_BEHIND if self._is_closing else (sign.fades_at or self._clock.now()) - self._clock.now()
        if seconds > most.total_seconds():
            sign.fades_at = None
            return
        await self._in_turn(sign, channel, seconds)
        if sign.is_wanted or await self._call(channel, sign.route, Presence.IDLE) or self._is_closing:
            sign.fades_at = None
        else:
            await self._rest(sign, RETRY_SECONDS)

    def _stands(self, sign: _Sign) -> bool:
        return sign.fades_at is not None and sign.fades_at > self._clock.now()

    def _wait_for(self, channel: Channel) -> float:
        """Return the seconds until the channel may be called."""
        now = self._clock.now()
        return max((self._not_before.get(channel.name, now) - now).total_seconds(), 0)

    async def _in_turn(self, sign: _Sign, channel: Channel, seconds: float) -> None:
        """Take a place in the channel's line of calls, and wait for it; at the end of the process nobody waits."""
        self._not_before[channel.name] = self._clock.now() + timedelta(seconds=seconds) + SPACING
        await self._rest(sign, 0 if self._is_closing else seconds)

    async def _rest(self, sign: _Sign, seconds: float) -> None:
        try:
            async with sign.breaks.step():
                await self._clock.sleep(seconds)
        except Broken:
            sign.breaks.looked()

    async def _call(self, channel: Channel, route: Route, state: Presence) -> bool:
        """Call the platform and return whether it obeyed; nothing depends on it, so that a failure is no error."""
        try:
            await channel.presence(route, state)
        except TrunklineError as error:
            logger.bind(channel=channel.name, chat=route.chat_id, error=str(error)).debug("presence was not shown")
            self._pause(channel.name, error)
            # What may have been done stands, as far as anybody knows.
            return isinstance(error, Unknown) and state is Presence.WORKING
        except Exception:  # the supervised boundary of a sign: a fault in it must not leave another one standing
            logger.bind(channel=channel.name).exception("presence failed by a fault of ours")
            return False
        return True

    def _pause(self, channel: str, error: TrunklineError) -> None:
        wait = timedelta()
        if isinstance(error, AuthFailed):
            wait = PAUSE
        elif isinstance(error, NotDone) and error.retry_after is not None:
            wait = timedelta(seconds=error.retry_after)
        until = self._clock.now() + wait
        self._not_before[channel] = max(self._not_before.get(channel, until), until)
