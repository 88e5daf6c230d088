"""Messages that come when they come, whether or not those before them are answered."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.null import NULL, said
from gateway.app.core import Core
from gateway.ports.observer import EventFilter

FINISHED = EventFilter(kind="finished")


@dataclass(frozen=True, slots=True)
class Told:
    """Seconds, one a message: how late it was handed in, and how long after it was accepted its turn had finished."""

    late: list[float] = field(default_factory=list)
    overhead: list[float] = field(default_factory=list)


class Arrivals:
    """Hands messages in at random moments, in one chat after the other: so many that each is answered in between."""

    def __init__(self, core: Core, chats: Sequence[str], *, rate: float) -> None:
        self._core = core
        self._chats = itertools.cycle(chats)
        self._rate = rate
        self._chance = random.Random(1)
        self._finishing: dict[str, asyncio.Future[float]] = {}

    async def hand_in(self, messages: int, told: Told) -> None:
        """Hand so many messages in, and return when the turns of all of them have finished."""
        following = asyncio.create_task(self._follow())
        try:
            async with asyncio.TaskGroup() as group:
                due = time.perf_counter()
                for _ in range(messages):
                    due += self._chance.expovariate(self._rate)
                    await asyncio.sleep(max(due - time.perf_counter(), 0))
                    group.create_task(self._one(next(self._chats), due, told))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _one(self, chat: str, due: float, told: Told) -> None:
        told.late.append(time.perf_counter() - due)
        loop = asyncio.get_running_loop()
        finished = self._finishing.setdefault(f"{NULL}:{chat}", loop.create_future())
        await self._core.intake(said(chat))
        accepted = time.perf_counter()
        told.overhead.append(await finished - accepted)

    async def _follow(self) -> None:
        async for event in self._core.events.follow(None, FINISHED):
            if (waiting := self._finishing.pop(event.session_key, None)) is not None:
                waiting.set_result(time.perf_counter())
