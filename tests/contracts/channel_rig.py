"""What the channel contract suite needs of a platform: a real adapter, and a loopback server to play its part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import StrEnum

from gateway.domain.keys import Route
from gateway.ports.channel import Channel


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
    """A channel wired to its loopback platform, and the levers of the platform."""

    channel: Channel
    direct: Route
    """A chat of one person with the bot, in which messages can be shown."""
    shared: Route
    """A shared chat, with the thread an answer there would go to."""
    longest: int
    """The most characters (as the platform counts) of one message."""

    @abstractmethod
    async def say(self, text: str, *, mention: bool = False) -> str:
        """A person writes in the direct chat, or mentions the bot in the shared one.

        Returns the dedupe key to expect.
        """

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
    def told_received(self) -> int:
        """How many events the adapter has told the platform it received."""

    @abstractmethod
    def fail_next(self, fault: Fault) -> None:
        """Arm a fault for the next call that shows something."""

    @abstractmethod
    def shown(self, route: Route) -> list[str]:
        """The texts a person sees in that chat or thread, in order."""

    @abstractmethod
    def secrets(self) -> list[str]:
        """The tokens that must appear in no log line and no error."""
