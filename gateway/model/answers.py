"""Reads a stream of events to its end, for callers who want the text alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway.domain.errors import Filtered
from gateway.ports.model import Finish, FinishReason, ModelEvent, TextDelta


async def text_of_answer(events: AsyncGenerator[ModelEvent, None]) -> str:
    """Return the text of an answer; raise `Filtered` if the provider's filter stopped it."""
    pieces: list[str] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta):
                pieces.append(event.text)
            elif isinstance(event, Finish) and event.reason is FinishReason.FILTER:
                raise Filtered("the provider's content filter stopped the answer")
    return "".join(pieces)
