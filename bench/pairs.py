"""Measuring two things in turns, so that what else the machine does falls on both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

Measured = Callable[[], Awaitable[object]]


async def medians(rounds: int, *measured: Measured) -> Sequence[float]:
    """Run each of these once a round, and return the median seconds of each. The first round is not counted.

    One that returns a number of seconds is believed: it left its preparations out.
    """
    times: list[list[float]] = [[] for _ in measured]
    for number in range(rounds + 1):
        for seen, one in zip(times, measured, strict=True):
            started = time.perf_counter()
            told = await one()
            if number:
                seen.append(told if isinstance(told, float) else time.perf_counter() - started)
    return [statistics.median(seen) for seen in times]
