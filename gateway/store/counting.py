"""Counting the tokens of rows without holding up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from gateway.domain.message import Message, countable_text
from gateway.ports.tokens import TokenCounter
from gateway.store.rows import counted

MOST_ON_THE_LOOP = 2_000
"""Characters that are counted faster than a thread is handed them: well under a millisecond."""


class RowCounter:
    """Counts rows with a token counter: in a thread at first, since a vocabulary takes a third of a second to load.

    Later ones are counted at once where they are short; a long text takes as long as a vocabulary.
    """

    def __init__(self, count: TokenCounter) -> None:
        self._count = count
        self._is_loaded = False

    async def __call__(self, messages: Sequence[Message], turn_id: str | None = None) -> Sequence[Message]:
        """Return the rows, of a turn if one is given, with their counts; those that have one keep it."""
        if not messages:
            return ()
        if self._is_loaded and sum(len(countable_text(row)) for row in messages) <= MOST_ON_THE_LOOP:
            return self._counted(messages, turn_id)
        rows = await asyncio.to_thread(self._counted, messages, turn_id)
        self._is_loaded = True
        return rows

    def _counted(self, messages: Sequence[Message], turn_id: str | None) -> Sequence[Message]:
        return [replace(counted(row, self._count), turn_id=turn_id) for row in messages]
