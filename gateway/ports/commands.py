"""The contract by which intake hands over what is said to the gateway rather than to the model."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.inbound import Inbound


class CommandHandler(ABC):
    """Acts on control input beside any running turn. Safe to share between tasks."""

    @abstractmethod
    async def handle(self, inbound: Inbound) -> bool:
        """Act on the event if it is a command or a choice; return False if it is ordinary input for the model."""
