"""Telegram for the channel contract suite: the adapter over the real library, wired to the loopback Bot API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.telegram.adapter import TelegramChannel
from channels.telegram.options import TelegramOptions
from gateway.domain.inbound import InboundKind
from gateway.domain.keys import Route
from tests.contracts.channel_rig import Fault, HurriedClock, PlatformRig
from tests.loopback.telegram import BOT, TelegramServer, Trouble, user

PERSON, GROUP, TOPIC, OTHER_BOT = 42, -1001, 7, 777
TROUBLES = {
    Fault.LIMITED: Trouble.LIMITED,
    Fault.LOST: Trouble.LOST,
    Fault.BAD_FORMAT: Trouble.BAD_ENTITIES,
    Fault.BLOCKED: Trouble.BLOCKED,
    Fault.BROKEN: Trouble.BROKEN,
}


class TelegramRig(PlatformRig):
    """A person, a group with a topic, and the bot."""

    kind = TelegramChannel
    longest = 4096
    # A bot is not told what is deleted.
    announces = tuple(kind for kind in InboundKind if kind is not InboundKind.DELETE)

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

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[TelegramRig]:
        async with TelegramServer() as server:
            made = cls(server)
            try:
                yield made
            finally:
                await made.channel.close()

    async def say(self, text: str) -> str:
        return f"upd:{await self.server.private(PERSON, text)}:{PERSON}:{self._chat.last_id}"

    async def mention(self, text: str) -> str:
        update = await self.server.group(GROUP, PERSON, text, topic=TOPIC)
        return f"upd:{update}:{GROUP}:{self._group.last_id}"

    async def announce(self, kind: InboundKind) -> InboundKind | None:
        server, person, words = self.server, user(PERSON), "words"
        match kind:
            case InboundKind.MESSAGE:
                await server.private(PERSON, words)
            case InboundKind.FILE:
                document = {"file_id": server.files.add(b"cat"), "file_name": "cat.txt", "mime_type": "text/plain"}
                await server.push({"message": server.message(self._chat, person, "", document=document)})
                return InboundKind.MESSAGE
            case InboundKind.EDIT:
                edited = server.message(self._chat, person, words, edit_date=1_796_000_060)
                await server.push({"edited_message": edited})
            case InboundKind.COMMAND:
                await server.private(PERSON, "/new", [{"type": "bot_command", "offset": 0, "length": 4}])
            case InboundKind.CHOICE:
                asked = self._chat.add("Sure?", is_ours=True)
                await server.press(PERSON, PERSON, asked.id, "yes")
            case InboundKind.REACTION:
                await server.push({"message_reaction": {"chat": self._chat.described(), "message_id": 1}})
                return None
        return kind

    async def repeat(self) -> None:
        await self.server.repeat()

    async def echo(self, text: str) -> None:
        await self.server.push({"message": self.server.message(self._chat, BOT, text)})

    async def other_bot(self, text: str) -> None:
        sender = user(OTHER_BOT, is_bot=True)
        await self.server.push({"message": self.server.mention(self._group, sender, text, topic=TOPIC)})

    async def disconnect(self) -> None:
        self.server.drop_polls()

    async def go_down(self) -> None:
        await self.server.stop()

    def told_received(self) -> int:
        return self.server.confirmed_count

    def fail_next(self, fault: Fault) -> None:
        self.server.fail(TROUBLES[fault], retry_after=7)

    def shown(self, route: Route) -> list[str]:
        return self.server.messages(int(route.chat_id), None if route.thread is None else int(route.thread))

    def secrets(self) -> list[str]:
        return [self.server.token]
