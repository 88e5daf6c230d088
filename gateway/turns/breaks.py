"""Breaking off what a turn is doing, from outside of it.

A signal is a hint: it only makes the turn look at the store, where it is written what was asked for. So a signal that
comes late, twice or for a turn that is over does no harm, and one that is lost costs time only.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import IntEnum
from typing import TypeVar

T = TypeVar("T")


class Why(IntEnum):
    """Why a step is broken off; of two reasons the greater one counts."""

    INPUT = 1
    """Something was said that is not to wait."""
    STOP = 2
    """Somebody may have asked for a stop; the store knows."""
    TIME_IS_UP = 3


class Broken(Exception):
    """The step was broken off; what it did so far may or may not have had an effect."""

    def __init__(self, why: Why) -> None:
        super().__init__("the turn's time is up" if why is Why.TIME_IS_UP else "something new is in the store")
        self.why = why


class Breaks:
    """What breaks off the steps of one turn. What is asked for between two steps meets the next one at its start."""

    def __init__(self) -> None:
        self._asked: Why | None = None
        self._step: asyncio.Timeout | None = None
        self.may_interrupt = True
        """Whether input breaks anything off; a turn that was interrupted again and again takes it in as it goes."""

    def ask(self, why: Why) -> None:
        """Break off the step that runs, or else the next one."""
        if why is Why.INPUT and not self.may_interrupt:
            return
        self._asked = why if self._asked is None else max(why, self._asked)
        # One that is being broken off already may take its time to end.
        if self._step is not None and not self._step.expired():
            self._step.reschedule(asyncio.get_running_loop().time())

    def looked(self) -> None:
        """Forget a request to look into the store, since that is done now."""
        if self._asked is not Why.TIME_IS_UP:
            self._asked = None

    @asynccontextmanager
    async def step(self) -> AsyncIterator[None]:
        """Let the body be broken off. Nothing is stored inside it: whether that was done would not be known."""
        if self._asked is not None:
            raise Broken(self._asked)
        try:
            async with asyncio.timeout(None) as self._step:
                yield
        except TimeoutError:
            # The body may have met a time limit of its own.
            if self._step is None or not self._step.expired() or self._asked is None:
                raise
            raise Broken(self._asked) from None
        finally:
            self._step = None

    async def within(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do one piece of work as a step of its own."""
        async with self.step():
            return await work()
