"""The contract of the rules by which a channel admits people and chats."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.policy import Rules


class Policy(ABC):
    """Knows each channel's rules. Safe to share between tasks."""

    @abstractmethod
    async def rules(self, channel: str) -> Rules:
        """Return the rules in force for a channel; the closed ones for a channel without any."""
