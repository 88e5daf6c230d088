"""The contract by which intake hands over what is said to the gateway rather than to the model."""

from __future__ import annotations

from abc import ABC, abstractmethod

from gateway.domain.inbound import Inbound


class CommandHandler(ABC):
    """Acts on control input beside any running turn. Safe to share between tasks."""

    @abstractmethod
    async def handle(self, inbound: Inbound) -> bool:
        """Act on the event if it is control, and return whether it is; all other input has its place in the inbox.

        A repeat of an event is control too, and nothing is done about it again. Raises `Unavailable` where nothing
        could be written; then the event must come again.
        """
