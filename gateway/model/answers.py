"""Reads a stream of events to its end, for callers who want the text alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway.ports.model import ModelEvent, TextDelta


async def text_of_answer(events: AsyncGenerator[ModelEvent, None]) -> str:
    """Return the text of an answer. Whatever breaks the stream off is raised, and no half of an answer returned."""
    pieces: list[str] = []
    async with aclosing(events):
        async for event in events:
            if isinstance(event, TextDelta):
                pieces.append(event.text)
    return "".join(pieces)
