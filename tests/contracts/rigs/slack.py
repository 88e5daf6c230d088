"""Slack for the channel contract suite: the adapter over the real libraries, wired to the loopback Slack."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.slack.adapter import SlackChannel
from channels.slack.options import SlackOptions
from gateway.domain.inbound import InboundKind
from gateway.domain.keys import Route
from tests.clock import settle
from tests.contracts.channel_rig import Fault, HurriedClock, PlatformRig
from tests.loopback.slack import SlackServer, broken, limited, lost, refused
from tests.loopback.slack_api import MARKDOWN_LIMIT
from tests.loopback.slack_events import clicked, commanded, deleted, edited, reacted

ANA = "U0ANA"
FAULTS = {
    Fault.LIMITED: limited(7),
    Fault.LOST: lost(),
    Fault.BAD_FORMAT: refused("invalid_blocks"),
    Fault.BLOCKED: refused("channel_not_found"),
    Fault.BROKEN: broken(500),
}


def options_for(slack: SlackServer) -> SlackOptions:
    """Return the settings that reach this server."""
    settings = {"bot_token": slack.bot_token, "app_token": slack.app_token, "api_url": slack.api_url}
    return SlackOptions.model_validate(settings)


class SlackRig(PlatformRig):
    """A person, a channel with a thread in it, and the bot."""

    kind = SlackChannel
    longest = MARKDOWN_LIMIT
    announces = tuple(InboundKind)

    def __init__(self, slack: SlackServer, root: str) -> None:
        self.slack = slack
        self.channel = SlackChannel("slack", options_for(slack), HurriedClock())
        self.direct = Route("slack", slack.dm_channel(ANA))
        self.shared = Route("slack", "C0GENERAL", root)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[SlackRig]:
        async with SlackServer() as slack:
            slack.add_channel("general", slack.add_user("ana"))
            root = await slack.say(ANA, "C0GENERAL", "a thread begins", kinds=())
            made = cls(slack, root)
            try:
                yield made
            finally:
                await made.channel.close()

    async def say(self, text: str) -> str:
        return self._key(self.direct, await self.slack.dm(ANA, text))

    async def mention(self, text: str) -> str:
        ts = await self.slack.mention(ANA, self.shared.chat_id, text, thread_ts=self.shared.thread)
        return self._key(self.shared, ts)

    async def announce(self, kind: InboundKind) -> InboundKind | None:
        slack, world = self.slack, self.slack.world
        chat = world.chats[self.direct.chat_id]
        message = chat.messages[0]
        match kind:
            case InboundKind.MESSAGE:
                await slack.dm(ANA, "words")
            case InboundKind.FILE:
                await slack.dm(ANA, "", files=[slack.add_file("cat.png", b"\x89PNG", "image/png")])
            case InboundKind.EDIT:
                await slack.deliver(edited(world, chat, message, "better words"))
            case InboundKind.DELETE:
                await slack.deliver(deleted(world, chat, message))
            case InboundKind.REACTION:
                await slack.deliver(reacted(world, chat, message, ANA))
            case InboundKind.CHOICE:
                await slack.sockets.deliver(clicked(world, chat, message, ANA), type="interactive")
            case InboundKind.COMMAND:
                await slack.sockets.deliver(commanded(chat, ANA, "/new", "now"), type="slash_commands")
        return InboundKind.MESSAGE if kind in (InboundKind.MESSAGE, InboundKind.FILE) else None

    async def repeat(self) -> None:
        await self.slack.repeat_last()

    async def echo(self, text: str) -> None:
        await self.slack.echo(self.direct.chat_id, text)

    async def other_bot(self, text: str) -> None:
        await self.slack.other_bot(self.shared.chat_id, text)

    async def disconnect(self) -> None:
        await self.slack.wait_connected()
        await self.slack.drop_connections()

    async def go_down(self) -> None:
        await self.slack.stop()
        # The adapter notices that the connections it kept are closed.
        await settle()

    def told_received(self) -> int:
        return len(self.slack.sockets.acks)

    def fail_next(self, fault: Fault) -> None:
        self.slack.fail_next(FAULTS[fault])

    def shown(self, route: Route) -> list[str]:
        return self.slack.messages(route.chat_id, route.thread)

    def secrets(self) -> list[str]:
        return [self.slack.bot_token, self.slack.app_token]

    def _key(self, place: Route, ts: str) -> str:
        return f"msg:{self.slack.team_id}:{place.chat_id}:{ts}"
