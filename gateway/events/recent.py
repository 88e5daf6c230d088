"""The newest events of this process, kept in memory for those who follow them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace

from gateway.ports.clock import Clock
from gateway.ports.observer import Event, EventFilter, Observer

KEPT = 1_000


class RecentEvents(Observer):
    """Gives each durable event an id, and keeps the newest of them.

    Ids begin at the time of the start in microseconds, so that those of a later process are larger. A follower that is
    too slow misses the oldest events, and nobody waits for it.
    """

    def __init__(self, clock: Clock, kept: int = KEPT) -> None:
        self._next_id = int(clock.now().timestamp() * 1_000_000)
        self._kept: deque[Event] = deque(maxlen=kept)
        self._followers: dict[asyncio.Event, deque[Event]] = {}
        self._most = kept

    def emit(self, event: Event) -> None:
        if event.is_durable:
            event = replace(event, id=self._next_id)
            self._next_id += 1
            self._kept.append(event)
        for news, queue in self._followers.items():
            queue.append(event)
            news.set()

    async def follow(self, after_id: int | None, filter: EventFilter) -> AsyncIterator[Event]:
        news = asyncio.Event()
        missed = [] if after_id is None else [event for event in self._kept if (event.id or 0) > after_id]
        queue = self._followers[news] = deque(missed, maxlen=self._most)
        try:
            while True:
                while queue:
                    event = queue.popleft()
                    if filter.takes(event):
                        yield event
                news.clear()
                await news.wait()
        finally:
            del self._followers[news]
