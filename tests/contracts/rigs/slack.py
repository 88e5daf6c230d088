"""Slack for the channel contract suite: the adapter over the real libraries, wired to the loopback Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from channels.slack.adapter import SlackChannel
from channels.slack.options import SlackOptions
from gateway.domain.keys import Route
from gateway.ports.clock import Clock
from tests.contracts.channel_rig import ChannelRig, Fault
from tests.loopback.slack import SlackServer, broken, limited, lost, refused
from tests.loopback.slack_api import MARKDOWN_LIMIT

FAULTS = {
    Fault.LIMITED: limited(7),
    Fault.LOST: lost(),
    Fault.BAD_FORMAT: refused("invalid_blocks"),
    Fault.BLOCKED: refused("channel_not_found"),
    Fault.BROKEN: broken(500),
}


class HurriedClock(Clock):
    """The time of this machine; waits only give others their turn, so that a lost connection heals at once."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


def options_for(slack: SlackServer, **changes: str) -> SlackOptions:
    """Return the settings that reach this server."""
    settings = {"bot_token": slack.bot_token, "app_token": slack.app_token, "api_url": slack.api_url}
    return SlackOptions.model_validate(settings | changes)


class SlackRig(ChannelRig):
    """A person, a channel with a thread in it, and the bot."""

    longest = MARKDOWN_LIMIT

    def __init__(self, slack: SlackServer, root: str) -> None:
        self.slack = slack
        self.channel = SlackChannel("slack", options_for(slack), HurriedClock())
        self.direct = Route("slack", slack.dm_channel("U0ANA"))
        self.shared = Route("slack", "C0GENERAL", root)

    async def say(self, text: str, *, mention: bool = False) -> str:
        slack, chat = self.slack, (self.shared if mention else self.direct).chat_id
        if mention:
            ts = await slack.mention("U0ANA", chat, text, thread_ts=self.shared.thread)
        else:
            ts = await slack.dm("U0ANA", text)
        return f"msg:{slack.team_id}:{chat}:{ts}"

    async def repeat(self) -> None:
        await self.slack.repeat_last()

    async def echo(self, text: str) -> None:
        await self.slack.echo(self.direct.chat_id, text)

    async def other_bot(self, text: str) -> None:
        await self.slack.other_bot(self.shared.chat_id, text)

    async def disconnect(self) -> None:
        await self.slack.wait_connected()
        await self.slack.drop_connections()

    def told_received(self) -> int:
        return len(self.slack.sockets.acks)

    def fail_next(self, fault: Fault) -> None:
        self.slack.fail_next(FAULTS[fault])

    def shown(self, route: Route) -> list[str]:
        return self.slack.messages(route.chat_id, route.thread)

    def secrets(self) -> list[str]:
        return [self.slack.bot_token, self.slack.app_token]


@asynccontextmanager
async def rig() -> AsyncIterator[ChannelRig]:
    """Run a loopback Slack with a channel for it, which the suite opens."""
    async with SlackServer() as slack:
        ana = slack.add_user("ana")
        slack.add_channel("general", ana)
        root = await slack.say(ana, "C0GENERAL", "a thread begins", kinds=())
        made = SlackRig(slack, root)
        try:
            yield made
        finally:
            await made.channel.close()
