"""Writing down what has happened, however long the store cannot be used."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from loguru import logger

from gateway.domain.backoff import backoff
from gateway.domain.errors import Unavailable
from gateway.ports.clock import Clock

T = TypeVar("T")


async def until_stored(write: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Write what was done; while the store is `Unavailable` (a full disk), again and again.

    It has happened already, and forgetting it would mean doing it twice.
    """
    for attempt in itertools.count():
        try:
            return await write()
        except Unavailable as error:
            logger.bind(error=str(error)).warning("what was done cannot be stored yet")
            await clock.sleep(backoff(attempt, 1.0))
    raise AssertionError("the count has no end")
