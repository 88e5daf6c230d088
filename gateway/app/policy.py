"""The rules that the configuration states."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.policy import Rules
from gateway.ports.policy import Policy

CLOSED = Rules()


class ConfiguredPolicy(Policy):
    """Answers from the settings; a channel without any rules is closed."""

    def __init__(self, rules: Mapping[str, Rules]) -> None:
        self._rules = rules

    async def rules(self, channel: str) -> Rules:
        return self._rules.get(channel, CLOSED)
