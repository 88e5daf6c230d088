"""How each model's provider counts tokens: read from the store once, and kept up as answers come."""

from __future__ import annotations

from collections import deque

from gateway.domain.calibration import LOOKED_AT, count_factor
from gateway.domain.turn import Usage
from gateway.ports.turns import Turns


class Calibration:
    """Remembers the latest calls of the models that are used here; their number is that of the models."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._calls: dict[tuple[str, str], deque[tuple[int, int]]] = {}

    async def factor(self, provider: str, model: str) -> float:
        """Return how many tokens the provider makes of one of ours."""
        calls = self._calls.get((provider, model))
        if calls is None:
            stored = await self._turns.counts(provider, model, LOOKED_AT)
            calls = self._calls[provider, model] = deque(reversed(stored), maxlen=LOOKED_AT)
        return count_factor(calls)

    def learn(self, usage: Usage) -> None:
        """Take in what a call was counted and reported as; of a model that is not known yet, the store will tell."""
        calls = self._calls.get((usage.provider, usage.model))
        if calls is not None and usage.counted_tokens > 0:
            calls.append((usage.counted_tokens, usage.input_tokens))
