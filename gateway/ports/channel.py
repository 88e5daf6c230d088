"""The contract of a channel: receiving and sending are separate halves, so each can work without the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Outbound, Part, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What the platform can do; what it cannot is said here, never by a missing verb.

    `find` says that the platform can be asked whether a part arrived, `private_notes` that a message in a shared chat
    can be shown to one person only, `edits` and `deletes` that what was sent can be changed. `presence_seconds` is how
    long the sign that the bot is at work stays without being renewed; 0 where there is no such sign.
    """

    find: bool = False
    edits: bool = False
    deletes: bool = False
    private_notes: bool = False
    presence_seconds: float = 0


class Presence(StrEnum):
    """What a person sees of the bot between messages."""

    WORKING = "working"
    IDLE = "idle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a channel's two halves are, told by completed round trips.

    `detail` is for an operator, and holds no secret.
    """

    receiving: bool
    detail: str = ""
    last_inbound: datetime | None = None
    last_outbound: datetime | None = None
    last_alive: datetime | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


class Sink(Protocol):
    """Takes an event in.

    Once it returns, the event is stored, or was refused for good; if it raises, it must come again.
    """

    async def __call__(self, inbound: Inbound) -> None:
        """Take one event."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request to one of a channel's own addresses; header names are lower-case, the body is raw."""

    headers: Mapping[str, str]
    query: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """What the platform is answered."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRoute:
    """An address a channel wants on our server; it is mounted at `/channels/{channel}{path}`."""

    method: str
    path: str
    handle: Callable[[HttpRequest], Awaitable[HttpResponse]]


class Channel(ABC):
    """One configured connection to a platform. Safe to share between tasks.

    The calls that show something (`post`, `put`, `drop`) raise `NotDone` when certainly nothing happened
    (`Unreachable` if the platform is away), `Unknown` when it may have, `Gone` when somebody deleted the message, and
    `AuthFailed` when a token or scope was refused (then nothing happened). They never retry by themselves and never
    sleep on a rate limit.
    """

    name: str
    kind: str
    capabilities: Capabilities

    @abstractmethod
    async def open(self) -> None:
        """Make clients and learn who the bot is. Receives nothing yet. Raises `AuthFailed` or `Unavailable`."""

    @abstractmethod
    async def close(self) -> None:
        """Close what `open` made; afterwards no task is left."""

    @abstractmethod
    async def receive(self, sink: Sink) -> None:
        """Bring events in until cancelled, or until there can be no more (a terminal whose input has ended).

        The platform is told "received" only after `sink` returned.

        Heals lost connections by itself; raises `AuthFailed` when only the owner can help.
        """

    @abstractmethod
    def routes(self) -> Sequence[HttpRoute]:
        """Return the addresses the platform calls, if it calls any."""

    @abstractmethod
    def render(self, outbound: Outbound) -> Sequence[Part]:
        """Split and format a message; pure, and never empty for a text that is not blank."""

    @abstractmethod
    async def presence(self, route: Route, state: Presence) -> None:
        """Show or clear that the bot is at work, where the platform has a sign for it in this place.

        Raises what the calls that show something raise; nothing depends on it.
        """

    @abstractmethod
    async def answer(self, choice: Inbound, reply: str) -> None:
        """Acknowledge a picked choice to the person who picked it, with a short text."""

    @abstractmethod
    def fetch(self, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
        """Yield the bytes of a file that came in; raise `Refused` if it is larger than `max_bytes` or not the file."""

    @abstractmethod
    def health(self) -> Health:
        """Return how the channel is, from what it has seen; makes no call."""

    @abstractmethod
    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        """Show a new message; `key` goes with it where the platform can carry it.

        `live` says that it will still change. A part for one person that cannot be kept from the others in the chat is
        `NotDone` for good, and never shown.
        """

    @abstractmethod
    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str, live: bool) -> Ref:
        """Make the message show `part`.

        `old` is what this process saw confirmed; None means unknown, and replaces all.
        """

    @abstractmethod
    async def drop(self, to: Route, ref: Ref) -> None:
        """Take the message away."""

    @abstractmethod
    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        """Look for a message posted with `key` since then that is none of `known`; None says it is certainly not there.

        Raises `Unavailable` if the platform does not answer, and `Refused` where `capabilities.find` is false.
        """
