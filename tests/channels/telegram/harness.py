"""What the tests of the Telegram channel share: a clock that skips waits, a sink that remembers, a running channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

from channels.telegram.adapter import TelegramChannel
from channels.telegram.options import TelegramOptions
from gateway.domain.inbound import Inbound
from gateway.ports.clock import Clock
from tests.loopback.telegram import TelegramServer

GUARD_SECONDS = 30


class SkippingClock(Clock):
    """Goes on by what is waited for, at once, and remembers each wait."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 30, tzinfo=UTC)
        self.waits: list[float] = []

    def now(self) -> datetime:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.waits.append(seconds)
            self.moment += timedelta(seconds=seconds)
        await asyncio.sleep(0)


class Store:
    """A sink that stores events, and refuses some of them at first."""

    def __init__(self, refuse: dict[str, int] | None = None) -> None:
        self.stored: list[Inbound] = []
        self.offered: list[str] = []
        self._refuse = dict(refuse or {})
        self._changed = asyncio.Condition()

    async def __call__(self, inbound: Inbound) -> None:
        self.offered.append(inbound.text)
        if self._refuse.get(inbound.text, 0) > 0:
            self._refuse[inbound.text] -= 1
            raise OSError("the disk is full")
        self.stored.append(inbound)
        async with self._changed:
            self._changed.notify_all()

    @property
    def texts(self) -> list[str]:
        """The texts stored, in order."""
        return [inbound.text for inbound in self.stored]

    async def until(self, count: int) -> None:
        """Wait until so many events are stored."""
        async with asyncio.timeout(GUARD_SECONDS), self._changed:
            await self._changed.wait_for(lambda: len(self.stored) >= count)


def channel_for(server: TelegramServer, clock: Clock, **changes: object) -> TelegramChannel:
    """Return a channel that talks to the loopback server."""
    options = {"bot_token": server.token, "api_url": server.api_url, "poll_seconds": 2, **changes}
    return TelegramChannel("tg", TelegramOptions.model_validate(options), clock)


@asynccontextmanager
async def opened(server: TelegramServer, clock: Clock) -> AsyncIterator[TelegramChannel]:
    """Run an open channel that does not receive."""
    channel = channel_for(server, clock)
    await channel.open()
    try:
        yield channel
    finally:
        await channel.close()


@asynccontextmanager
async def receiving(server: TelegramServer, clock: Clock, sink: Store) -> AsyncIterator[TelegramChannel]:
    """Run an open channel that receives into `sink`."""
    async with opened(server, clock) as channel:
        task = asyncio.create_task(channel.receive(sink))
        try:
            yield channel
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
