"""A chat as a person has it, the same on either platform."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any

from tests.acceptance.world import World
from tests.loopback.slack import SlackServer
from tests.loopback.slack_socket import Envelope
from tests.loopback.telegram import TelegramServer

LOOK_SECONDS = 0.02


class Chat(ABC):
    """What a person does in it and sees in it. `stop` is the word that stops the bot there."""

    stop: str

    @property
    @abstractmethod
    def key(self) -> str:
        """The key of its session."""

    @abstractmethod
    async def say(self, text: str) -> None:
        """Write to the bot."""

    @abstractmethod
    def last(self) -> Any:
        """Return what the platform told of the last message of all."""

    @abstractmethod
    async def repeat(self, told: Any) -> None:
        """Have the platform tell it once more, as after an answer that was lost."""

    @abstractmethod
    async def taken(self) -> None:
        """Wait until the platform knows that everything it has told is received."""

    @abstractmethod
    async def received(self) -> None:
        """Wait until the platform knows that the last message of this chat is received, where order depends on it."""

    @abstractmethod
    def shown(self) -> list[str]:
        """Return what the bot shows, in order."""


class TelegramChat(Chat):
    """A private chat."""

    stop = "/stop"

    def __init__(self, telegram: TelegramServer, user: int) -> None:
        self._telegram = telegram
        self._user = user
        self._chat = user

    @property
    def key(self) -> str:
        return f"telegram:{self._chat}"

    async def say(self, text: str) -> None:
        command = {"type": "bot_command", "offset": 0, "length": len(text)}
        await self._telegram.private(self._user, text, [command] if text.startswith("/") else None)

    def last(self) -> dict[str, Any]:
        return [*self._telegram.updates.confirmed_updates, *self._telegram.updates.pending][-1]

    async def repeat(self, told: dict[str, Any]) -> None:
        await self._telegram.push(told)

    async def taken(self) -> None:
        await self._telegram.wait_polled()

    async def received(self) -> None:
        # Telegram keeps the order of all updates by itself.
        return

    def shown(self) -> list[str]:
        return self._telegram.messages(self._chat)


class TelegramGroup(TelegramChat):
    """A group in which one person talks to the bot."""

    def __init__(self, telegram: TelegramServer, user: int) -> None:
        super().__init__(telegram, user)
        self._chat = -user

    async def say(self, text: str) -> None:
        await self._telegram.group(self._chat, self._user, text)


class SlackChat(Chat):
    """A direct chat."""

    stop = "!stop"

    def __init__(self, slack: SlackServer, user: str) -> None:
        self._slack = slack
        self._user = user

    @property
    def key(self) -> str:
        return f"slack:{self._slack.dm_channel(self._user)}"

    async def say(self, text: str) -> None:
        await self._slack.dm(self._user, text)

    def last(self) -> Envelope:
        return self._slack.sockets.envelopes[-1]

    async def repeat(self, told: Envelope) -> None:
        await self._slack.sockets.deliver(told.payload, type=told.type, retry=1)

    async def taken(self) -> None:
        await self._slack.until(lambda: not self._slack.unacked)

    async def received(self) -> None:
        mine = [one for one in self._slack.unacked if one.payload["event"]["user"] == self._user]
        while not all(one.acked for one in mine):
            await asyncio.sleep(LOOK_SECONDS)

    def shown(self) -> list[str]:
        return self._slack.answers(self._slack.dm_channel(self._user))


class SlackThread(SlackChat):
    """A thread in a channel, begun by the first message."""

    def __init__(self, slack: SlackServer, user: str, channel: str) -> None:
        super().__init__(slack, user)
        self._channel = channel
        self._thread = ""

    @property
    def key(self) -> str:
        return f"slack:{self._channel}:{self._thread}"

    async def say(self, text: str) -> None:
        ts = await self._slack.mention(self._user, self._channel, text, thread_ts=self._thread or None)
        self._thread = self._thread or ts

    def shown(self) -> list[str]:
        return self._slack.answers(self._channel, self._thread)


def chat_of(world: World, platform: str) -> Chat:
    """Return a person's chat on `slack` or `telegram`."""
    return TelegramChat(world.telegram, 111) if platform == "telegram" else SlackChat(world.slack, world.alice)
