"""Running the calls of one round, side by side; whatever happens, each of them has a result in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

from loguru import logger

from gateway.domain.legality import interrupted
from gateway.domain.message import Message, Role, ToolCall
from gateway.ports.tools import ToolContext, ToolResult, Tools
from gateway.turns.strays import Strays

MOST_AT_ONCE = 8
NO_OBJECT = "The arguments are not a JSON object, so the tool was not run."
NOT_RUN = "The tool was not run, since something else came in between."
FAILED = "The tool failed; whether it took effect is not known."


class Calling:
    """The calls of one answer, in the order in which the model asked for them."""

    def __init__(self, tools: Tools, calls: Sequence[ToolCall], context: ToolContext, strays: Strays) -> None:
        self._tools = tools
        self._calls = calls
        self._context = context
        self._strays = strays
        self._is_over = False
        self._begun: set[int] = set()
        self._results: dict[int, ToolResult] = {}
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)

    async def run(self) -> None:
        """Run them all; if this is broken off, those that run are cancelled, and what is done is kept.

        A tool that does not obey is waited for a moment only; whatever it still returns is not taken.
        """
        tasks = [
            asyncio.create_task(self._run(place, call), name=f"tool {call.name}")
            for place, call in enumerate(self._calls)
        ]
        try:
            await asyncio.wait(tasks)
        finally:
            self._is_over = True
            await self._strays.cancel([task for task in tasks if not task.done()])

    def rows(self) -> Sequence[Message]:
        """Return a row for each call: its result, or that it was interrupted."""
        return [self._row(place, call) for place, call in enumerate(self._calls)]

    def _row(self, place: int, call: ToolCall) -> Message:
        result = self._results.get(place)
        if result is None:
            row = interrupted(call)
            return row if place in self._begun else replace(row, content=NOT_RUN)
        return Message(
            role=Role.TOOL,
            content=result.text,
            tool_call_id=call.id,
            name=call.name,
            media=result.media,
            extra={"is_error": True} if result.is_error else {},
        )

    async def _run(self, place: int, call: ToolCall) -> None:
        async with self._slots:
            self._begun.add(place)
            result = await self._result(call)
            if not self._is_over:
                self._results[place] = result

    async def _result(self, call: ToolCall) -> ToolResult:
        if not _is_object(call.arguments):
            return ToolResult(text=NO_OBJECT, is_error=True)
        try:
            result: object = await self._tools.call(call, self._context)
            return result if isinstance(result, ToolResult) else ToolResult(text=FAILED, is_error=True)
        except (Exception, SystemExit):  # the supervised boundary of a tool: its fault is a result
            logger.bind(tool=call.name).exception("a tool failed by a fault of ours")
            return ToolResult(text=FAILED, is_error=True)


def unanswered(rows: Sequence[Message]) -> Sequence[Message]:
    """Return a row for each call that has no result, as a process that died over its tools leaves them."""
    # Only the newest round can be without results; ids of calls may come again from one round to the next.
    start = next((place for place in range(len(rows) - 1, -1, -1) if rows[place].tool_calls), len(rows))
    answered = {row.tool_call_id for row in rows[start:] if row.role is Role.TOOL}
    return [interrupted(call) for row in rows[start : start + 1] for call in row.tool_calls if call.id not in answered]


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments or "{}"), dict)
    except (ValueError, RecursionError):
        return False
