"""Tools whose calls do what a test says: return at once, wait for a gate, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.domain.message import ToolCall
from gateway.domain.session import Session
from gateway.ports.model import ToolCallRequested
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec

NAMES = ("look", "write", "wait", "fall")
SCHEMA = {"type": "object"}


class Scripted(Tools):
    """`look` returns at once, `write` has an effect, `wait` ends when its gate opens, and `fall` raises."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.written: list[str] = []
        self.cancelled: list[str] = []
        self.sessions: dict[str, str] = {}
        self.gates: dict[str, asyncio.Event] = {}

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        return [ToolSpec(name=name, description=name, schema=SCHEMA, side_effects=name == "write") for name in NAMES]

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.started.append(call.id)
        self.sessions[call.id] = context.session.id
        if call.name == "fall":
            raise ZeroDivisionError("/etc/passwd sk-test")
        if call.name == "wait":
            await self._gate(call.id)
        if call.name == "write":
            self.written.append(call.arguments)
        return ToolResult(text=f"{call.name} {call.id} done")

    def open(self, id: str) -> None:
        """Let the call of this id end."""
        self.gates.setdefault(id, asyncio.Event()).set()

    async def _gate(self, id: str) -> None:
        try:
            await self.gates.setdefault(id, asyncio.Event()).wait()
        except asyncio.CancelledError:
            self.cancelled.append(id)
            raise


def calling(*calls: str) -> list[ToolCallRequested]:
    """Return what a model says to call tools, each written as `name:id`."""
    pairs = [call.split(":") for call in calls]
    return [ToolCallRequested(id, name, "{}") for name, id in pairs]
