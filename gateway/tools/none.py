"""A gateway without tools."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.message import ToolCall
from gateway.domain.session import Session
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec


class NoTools(Tools):
    """Offers nothing; a model that calls a tool all the same is told that it has none."""

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        return ()

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        return ToolResult(text=f"There is no tool named {call.name!r} here.", is_error=True)
