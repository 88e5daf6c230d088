"""Tools for a process under test: what they do is seen in a folder, by whoever looks at it from another process.

`note` has an effect, `look` takes a moment and has none, `wait` ends when there is a file `go`, and `restart` asks the
very process that runs it to stop, and waits for that.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.domain.message import ToolCall
from gateway.domain.session import Session
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec
from tests.acceptance.traces import EFFECTS, GO

LOOK_SECONDS = 0.2
POLL_SECONDS = 0.01


def _nothing() -> None:
    pass


class ScriptedTools(Tools):
    """Every call but a `look` appends a line to a file, so that runs are counted over all processes."""

    has_acted: Callable[[], None] = staticmethod(_nothing)
    """Called once a `note` has had its effect, before it returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        return [
            ToolSpec(name=name, description=name, schema={"type": "object"}, side_effects=name != "look")
            for name in ("note", "look", "wait", "restart")
        ]

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.name == "look":
            await asyncio.sleep(LOOK_SECONDS)
            return ToolResult(text="nothing to be seen")
        line = {"session": str(context.session.key), "turn": context.turn_id, "call": call.id, "name": call.name}
        with (self._folder / EFFECTS).open("a") as file:
            file.write(f"{json.dumps(line)}\n")
        if call.name == "wait":
            await self._until_told()
        if call.name == "restart":
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        self.has_acted()
        return ToolResult(text=f"{call.name} done")

    async def _until_told(self) -> None:
        while not (self._folder / GO).exists():
            await asyncio.sleep(POLL_SECONDS)
