"""Session keys and routes: where a conversation lives and where an answer goes.

A key is written `channel:chat_id[:thread]`. A `:` or `%` inside a part is percent-encoded, and nothing else is, so
each key has exactly one spelling. Every key in the gateway is made here: by `Route.key` for what comes in and goes out,
by `SessionKey.parse` for what a person or a file wrote.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from gateway.domain.errors import InvalidKey

_CHANNEL = re.compile(r"[a-z0-9_-]+")
_ESCAPES = {"%3A": ":", "%25": "%"}
_EXPECTED = "expected 'channel:chat_id' or 'channel:chat_id:thread'"


@lru_cache(maxsize=256)
def check_channel_name(name: str) -> str:
    """Return `name` if it can name a channel; raise `InvalidKey` otherwise."""
    if not _CHANNEL.fullmatch(name):
        raise InvalidKey(f"expected a channel name of the letters a-z, 0-9, _ and -, got {name!r}")
    return name


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Names one conversation: a channel, a chat inside it, and perhaps a thread inside the chat."""

    channel: str
    chat_id: str
    thread: str | None = None

    def __post_init__(self) -> None:
        check_channel_name(self.channel)
        _check_part("chat_id", self.chat_id)
        if self.thread is not None:
            _check_part("thread", self.thread)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a key from its one spelling; raise `InvalidKey` for any other text."""
        parts = text.split(":")
        if len(parts) not in (2, 3):
            raise InvalidKey(f"{_EXPECTED}, got {text!r}")
        channel, *rest = parts
        return cls(channel, *(_decode(part, text) for part in rest))

    def __str__(self) -> str:
        return join_parts(self.channel, self.chat_id, *([] if self.thread is None else [self.thread]))


@dataclass(frozen=True, slots=True)
class Route:
    """Where an answer goes; `reply_to` is the platform's id of the message it answers."""

    channel: str
    chat_id: str
    thread: str | None = None
    reply_to: str | None = None

    @property
    def key(self) -> SessionKey:
        """The session this route belongs to."""
        return SessionKey(self.channel, self.chat_id, self.thread)

    @property
    def lane(self) -> str:
        """The ordered way out to this chat; all its threads share one, since platforms limit by chat."""
        return join_parts(self.channel, self.chat_id)


def join_parts(*parts: str) -> str:
    """Join the parts of a key or lane, each percent-encoded."""
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)


def _check_part(name: str, part: str) -> None:
    if not part:
        raise InvalidKey(f"{_EXPECTED}, got an empty {name}")
    if not part.isprintable():
        raise InvalidKey(f"expected a {name} of printable characters, got {part!r}")


def _decode(part: str, whole: str) -> str:
    if "%" not in part:
        return part
    pieces = re.split(r"(%.{0,2})", part, flags=re.DOTALL)
    for index in range(1, len(pieces), 2):
        if pieces[index] not in _ESCAPES:
            raise InvalidKey(f"expected %3A or %25 in a key, got {pieces[index]!r} in {whole!r}")
        pieces[index] = _ESCAPES[pieces[index]]
    return "".join(pieces)
