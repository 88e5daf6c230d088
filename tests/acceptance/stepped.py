"""A world whose gateway has tools and can be killed at a step, and what is found in its store."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.acceptance.gateway import HANG_SECONDS
from tests.acceptance.nursery import Nursery
from tests.acceptance.script import scripted
from tests.acceptance.traces import EFFECTS, FOLDER, GO, LEFT, STEP
from tests.acceptance.world import World, a_world

SETTINGS = "sweep_seconds = 0.1"
LOOK_SECONDS = 0.01
UNSETTLED = """
SELECT 'inbox' AS what, state FROM inbox WHERE state = 'pending'
UNION ALL SELECT 'turn', state FROM turns WHERE state IN ('running', 'waiting')
UNION ALL SELECT 'delivery', state FROM outbox WHERE state = 'pending'
"""


@dataclass
class Stepped(World):
    """The world, and the folder in which the tools leave traces."""

    folder: Path

    async def start(self, step: str = "") -> None:
        """Start the gateway, to be struck at a step or not."""
        self.gateway.extra = {FOLDER: str(self.folder), STEP: step}
        await self.gateway.start()

    async def struck(self) -> None:
        """Wait until the gateway was killed at its step."""
        assert await self.gateway.ended() == -signal.SIGKILL

    def runs(self) -> dict[str, int]:
        """Return how often each call of a tool with effects was run, by its id, over all processes."""
        file = self.folder / EFFECTS
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(json.loads(line)["call"] for line in lines)

    def let_go(self) -> None:
        """Let the tools that wait come to an end."""
        (self.folder / GO).touch()

    def turns(self) -> list[tuple[str, int]]:
        """Return the state and attempt of every turn, oldest first."""
        rows = self.rows("SELECT state, attempt FROM turns ORDER BY started_at, first_seq")
        return [(row["state"], row["attempt"]) for row in rows]

    def said(self, key: str) -> list[str]:
        """Return what people said in the sessions of a key, in order, as it is stored."""
        return [text for role, text in self.history(key) if role == "user"]

    def resent(self) -> int:
        """Return how many parts were sent though they may have been there already."""
        return int(self.rows("SELECT coalesce(sum(resent), 0) AS count FROM outbox_parts")[0]["count"])

    async def settled(self, seconds: float = HANG_SECONDS) -> None:
        """Wait until nothing is left to do."""
        await until(lambda: not self.rows(UNSETTLED), lambda: [tuple(row) for row in self.rows(UNSETTLED)], seconds)

    async def rest(self, seconds: float = HANG_SECONDS) -> None:
        """Let the gateway finish and stop it in good order; then nothing of its work may be left, in it or behind."""
        await self.settled(seconds)
        assert await self.gateway.stop() == 0, "".join(self.gateway.output[-50:])
        assert self.left() == {}
        assert [row["name"] for row in self.rows("SELECT name FROM leases WHERE expires_at > 0")] == []
        assert self.models.refusals == []

    def left(self) -> dict[str, int]:
        """Return what is left of the work of the process that stopped in good order last."""
        lines = [line.removeprefix(LEFT) for line in self.gateway.output if line.startswith(LEFT)]
        return {what: count for what, count in json.loads(lines[-1]).items() if count}


@asynccontextmanager
async def a_stepped_world(folder: Path, nursery: Nursery, settings: str = SETTINGS) -> AsyncIterator[Stepped]:
    """Set up a world around a stepper, with the scripted model."""
    async with a_world(folder, settings=settings, launch=nursery.launch) as world:
        world.models.answer = scripted
        yield Stepped(**vars(world), folder=folder)


async def until(
    true: Callable[[], object], else_tell: Callable[[], Any] = lambda: "", seconds: float = HANG_SECONDS
) -> None:
    """Wait until something is so; a guard against hanging tells what is so instead."""
    try:
        async with asyncio.timeout(seconds):
            while not true():
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise AssertionError(f"waited {seconds} s in vain; there is {else_tell()}") from None
