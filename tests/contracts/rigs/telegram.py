"""Telegram for the channel contract suite: the adapter over the real library, wired to the loopback Bot API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from channels.telegram.adapter import TelegramChannel
from channels.telegram.options import TelegramOptions
from gateway.domain.keys import Route
from gateway.ports.clock import Clock
from tests.contracts.channel_rig import ChannelRig, Fault
from tests.loopback.telegram import BOT, TelegramServer, Trouble, user

PERSON, GROUP, TOPIC, OTHER_BOT = 42, -1001, 7, 777
TROUBLES = {
    Fault.LIMITED: Trouble.LIMITED,
    Fault.LOST: Trouble.LOST,
    Fault.BAD_FORMAT: Trouble.BAD_ENTITIES,
    Fault.BLOCKED: Trouble.BLOCKED,
    Fault.BROKEN: Trouble.BROKEN,
}


class HurriedClock(Clock):
    """The time of this machine, with waits cut short, so that a lost connection heals soon."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.05))


class TelegramRig(ChannelRig):
    """A person, a group with a topic, and the bot."""

    longest = 4096

    def __init__(self, server: TelegramServer) -> None:
        options = TelegramOptions.model_validate(
            {"bot_token": server.token, "api_url": server.api_url, "poll_seconds": 5}
        )
        self.server = server
        self.channel = TelegramChannel("telegram", options, HurriedClock())
        self.direct = Route("telegram", str(PERSON))
        self.shared = Route("telegram", str(GROUP), str(TOPIC))
        self._chat = server.open_private(PERSON)
        self._group = server.open_group(GROUP, TOPIC)

    async def say(self, text: str, *, mention: bool = False) -> str:
        if mention:
            return f"upd:{await self.server.group(GROUP, PERSON, text, topic=TOPIC)}"
        return f"upd:{await self.server.private(PERSON, text)}"

    async def repeat(self) -> None:
        await self.server.repeat()

    async def echo(self, text: str) -> None:
        await self.server.push({"message": self.server.message(self._chat, BOT, text)})

    async def other_bot(self, text: str) -> None:
        sender = user(OTHER_BOT, is_bot=True)
        await self.server.push({"message": self.server.mention(self._group, sender, text, topic=TOPIC)})

    async def disconnect(self) -> None:
        self.server.drop_polls()

    def told_received(self) -> int:
        return self.server.confirmed_count

    def fail_next(self, fault: Fault) -> None:
        self.server.fail(TROUBLES[fault], retry_after=7)

    def shown(self, route: Route) -> list[str]:
        return self.server.messages(int(route.chat_id), None if route.thread is None else int(route.thread))

    def secrets(self) -> list[str]:
        return [self.server.token]


@asynccontextmanager
async def rig() -> AsyncIterator[ChannelRig]:
    """Run a loopback Telegram with a channel for it, which the suite opens."""
    async with TelegramServer() as server:
        made = TelegramRig(server)
        try:
            yield made
        finally:
            await made.channel.close()
