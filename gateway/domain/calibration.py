"""How a provider counts tokens, compared with how we do: learned from what it reports."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

UNKNOWN_FACTOR = 1.1
"""For a model that has not been heard of yet: another provider's tokenizer counts 3 to 10 per cent more (measured)."""
LEAST_FACTOR, MOST_FACTOR = 0.8, 3.0
LEAST_RATIO = 0.7
"""A server that reports less counts something else, such as only what was not cached."""
LEAST_COUNTED = 1_000
"""A smaller request says little: what a provider adds to each weighs too much in it."""
LOOKED_AT = 20
"""How many of the latest calls are compared."""
STEP = 0.05


def count_factor(calls: Iterable[tuple[int, int]]) -> float:
    """Return how many tokens the provider makes of one of ours, from pairs of (counted, reported); the most that was.

    A history in another language or full of code weighs differently, so the highest of the latest calls is kept to.
    """
    told = [reported / counted for counted, reported in calls if counted >= LEAST_COUNTED]
    ratios = [ratio for ratio in told if ratio >= LEAST_RATIO]
    if not ratios:
        return UNKNOWN_FACTOR
    # In steps, so that a budget does not change with every call.
    stepped = ceil(round(max(ratios) / STEP, 6)) * STEP
    return round(min(max(stepped, LEAST_FACTOR), MOST_FACTOR), 2)
