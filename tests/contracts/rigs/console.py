"""The terminal for the channel contract suite: a person who types into a pipe and reads what is printed."""

from __future__ import annotations

import io
import itertools
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TextIO

from channels.console.adapter import CHAT, ConsoleChannel
from channels.console.options import ConsoleOptions
from gateway.domain.inbound import InboundKind
from gateway.domain.keys import Route
from tests.contracts.channel_rig import ChannelRig, HurriedClock


class Screen(io.StringIO):
    """Remembers each text that was printed."""

    def __init__(self) -> None:
        super().__init__()
        self.printed: list[str] = []

    def write(self, text: str) -> int:
        self.printed.append(text.removesuffix("\n"))
        return super().write(text)


class ConsoleRig(ChannelRig):
    """One person; there is no platform that could fail, and nothing comes but lines."""

    kind = ConsoleChannel
    longest = sys.maxsize
    announces = (InboundKind.MESSAGE,)

    def __init__(self, stdin: TextIO, keyboard: int) -> None:
        ids = map(str, itertools.count(1))
        self._said = 0
        self._keyboard = keyboard
        self._screen = Screen()
        self.channel = ConsoleChannel(
            "console",
            ConsoleOptions(),
            HurriedClock(),
            stdin=stdin,
            stdout=self._screen,
            make_id=lambda: next(ids),
        )
        self.direct = Route("console", CHAT)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[ConsoleRig]:
        read, write = os.pipe()
        with os.fdopen(read) as stdin, os.fdopen(write, "wb"):
            made = cls(stdin, write)
            try:
                yield made
            finally:
                await made.channel.close()

    async def say(self, text: str) -> str:
        os.write(self._keyboard, f"{text}\n".encode())
        self._said += 1
        return f"line:{self._said}"

    async def announce(self, kind: InboundKind) -> InboundKind | None:
        await self.say("words")
        return kind

    def shown(self, route: Route) -> list[str]:
        return list(self._screen.printed)
