"""What the channel contract suite needs: a real adapter with somebody to talk to, and what goes wrong on platforms."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar

from gateway.domain.inbound import InboundKind
from gateway.domain.keys import Route
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock


class Fault(StrEnum):
    """What the platform does to the next call that shows something."""

    LIMITED = "limited"
    """Refuses it for a rate limit, asking for 7 seconds."""
    LOST = "lost"
    """Applies it, then drops the connection without an answer."""
    BAD_FORMAT = "bad format"
    """Refuses the formatting, and would take plain text."""
    BLOCKED = "blocked"
    """Refuses it for good: the person blocked the bot, or the chat is gone."""
    BROKEN = "broken"
    """Answers with an internal error of the platform (HTTP 500)."""


class ChannelRig(ABC):
    """A channel, a person to talk to in a chat of their own, and what that person sees.

    `announces` are the kinds of event that can come in here at all.
    """

    kind: ClassVar[type[Channel]]
    places: ClassVar[tuple[str, ...]] = ("direct",)
    longest: ClassVar[int]
    """The most characters (as the platform counts) of one message."""
    announces: ClassVar[tuple[InboundKind, ...]]

    channel: Channel
    direct: Route
    """A chat of one person with the bot, in which messages can be shown."""

    @classmethod
    @abstractmethod
    def running(cls) -> AbstractAsyncContextManager[ChannelRig]:
        """Run a rig, with a channel that the suite opens."""

    @abstractmethod
    async def say(self, text: str) -> str:
        """The person writes in the direct chat. Returns the dedupe key to expect."""

    @abstractmethod
    async def announce(self, kind: InboundKind) -> InboundKind | None:
        """Let something of a kind happen in the direct chat; return what is to become of it, None for nothing."""

    @abstractmethod
    def shown(self, route: Route) -> list[str]:
        """The texts a person sees in that chat or thread, in order."""


class PlatformRig(ChannelRig):
    """A channel wired to a loopback server, and the levers of the server."""

    places = ("direct", "shared")
    shared: Route
    """A shared chat, with the thread an answer there would go to."""

    @abstractmethod
    async def mention(self, text: str) -> str:
        """The person mentions the bot in the shared chat. Returns the dedupe key to expect."""

    @abstractmethod
    async def repeat(self) -> None:
        """The platform delivers its last event once more."""

    @abstractmethod
    async def echo(self, text: str) -> None:
        """The platform delivers a message that the bot itself wrote in the direct chat."""

    @abstractmethod
    async def other_bot(self, text: str) -> None:
        """Another bot writes in the direct or shared chat, addressing ours."""

    @abstractmethod
    async def disconnect(self) -> None:
        """The platform drops the receiving connection."""

    @abstractmethod
    async def go_down(self) -> None:
        """The platform is gone: nobody answers at its address."""

    @abstractmethod
    def told_received(self) -> int:
        """How many events the adapter has told the platform it received."""

    @abstractmethod
    def fail_next(self, fault: Fault) -> None:
        """Arm a fault for the next call that shows something."""

    @abstractmethod
    def secrets(self) -> list[str]:
        """The tokens that must appear in no log line and no error."""


class HurriedClock(Clock):
    """The time of this machine; waits only give others their turn, so that a lost connection heals at once."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
