"""Wake-ups inside one process: a task per id that is awake, and the event loop's timers for later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import Context
from datetime import datetime

from loguru import logger

from gateway.domain.errors import Unavailable
from gateway.ports.clock import Clock
from gateway.ports.wakeups import Handler, Signal, Topic, Wakeups

_Key = tuple[Topic, str]


class LocalWakeups(Wakeups):
    """Serves one event loop. A handler that raises is logged, and its id may be woken again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._handlers: Mapping[Topic, Handler] = {}
        self._waiting: set[_Key] = set()
        self._running: dict[_Key, asyncio.Task[None]] = {}
        self._timers: dict[_Key, tuple[datetime, asyncio.Task[None]]] = {}
        self._receivers: dict[str, Callable[[Signal], None]] = {}
        self._is_running = False

    async def wake(self, topic: Topic, id: str, at: datetime | None = None) -> None:
        if at is not None and at > self._clock.now():
            self._set_timer((topic, id), at)
        else:
            self._waiting.add((topic, id))
            self._start_waiting()

    async def signal(self, session_id: str, signal: Signal) -> None:
        if (receive := self._receivers.get(session_id)) is not None:
            receive(signal)

    def on_signal(self, session_id: str, receive: Callable[[Signal], None] | None) -> None:
        if receive is None:
            self._receivers.pop(session_id, None)
        else:
            self._receivers[session_id] = receive

    async def run(self, handlers: Mapping[Topic, Handler]) -> None:
        self._handlers, self._is_running = handlers, True
        self._start_waiting()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._is_running = False
            await self._cancel_all()
            # Nobody follows these hints any more; the next sweep finds what they were about.
            self._waiting.clear()

    async def idle(self) -> None:
        """Return once no handler runs and nothing waits to be handled now; what is timed for later does not count."""
        while self._running:
            await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)

    def _start_waiting(self) -> None:
        if not self._is_running:
            return
        for key in [key for key in self._waiting if key not in self._running and key[0] in self._handlers]:
            self._waiting.discard(key)
            # A context of its own: what the waker has bound to its log lines is not about this id.
            task = asyncio.create_task(self._handle(key), name=f"{key[0]} {key[1]}", context=Context())
            self._running[key] = task

    async def _handle(self, key: _Key) -> None:
        topic, id = key
        try:
            await self._handlers[topic](id)
        except Unavailable as error:
            # The sweep finds what is left to do, once it can be done.
            logger.bind(topic=topic.value, id=id, error=str(error)).warning("work waits for the store")
        except Exception:  # the supervised boundary of every handler: one id's failure is not another's
            logger.bind(topic=topic.value, id=id).exception("a handler failed")
        finally:
            del self._running[key]
            self._start_waiting()

    def _set_timer(self, key: _Key, at: datetime) -> None:
        earlier = self._timers.get(key)
        if earlier is not None:
            if earlier[0] <= at:
                return
            earlier[1].cancel()
        self._timers[key] = (at, asyncio.create_task(self._ring(key, at), name=f"wake {key[0]} {key[1]}"))

    async def _ring(self, key: _Key, at: datetime) -> None:
        # A clock that is set back, or a timer that is early, must not let the moment pass unnoticed.
        while (seconds := (at - self._clock.now()).total_seconds()) > 0:
            await self._clock.sleep(seconds)
        del self._timers[key]
        self._waiting.add(key)
        self._start_waiting()

    async def _cancel_all(self) -> None:
        tasks = [*self._running.values(), *(task for _, task in self._timers.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._timers.clear()
