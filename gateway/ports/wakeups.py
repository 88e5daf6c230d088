"""The contract of wake-ups: hints that there is work, never the record of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from enum import StrEnum

Handler = Callable[[str], Awaitable[None]]
"""Called with the id that was woken; never twice at once for one id."""


class Topic(StrEnum):
    """What can be woken: a session's turns, a lane's deliveries, or the naming of a session."""

    SESSION = "session"
    LANE = "lane"
    TITLE = "title"


class Signal(StrEnum):
    """What a running turn can be told from outside."""

    STOP = "stop"
    INPUT = "input"
    """Something was said that is not to wait for the next tool boundary."""


class Wakeups(ABC):
    """Carries wake-ups to whoever runs handlers.

    One may be lost with its process; a sweep of the store makes up for it.
    """

    @abstractmethod
    async def wake(self, topic: Topic, id: str, at: datetime | None = None) -> None:
        """Ask for the handler of `topic` to be called with `id`, now or at that moment. Repeats that wait are one."""

    @abstractmethod
    async def signal(self, session_id: str, signal: Signal) -> None:
        """Tell whoever runs the session's turn."""

    @abstractmethod
    def on_signal(self, session_id: str, receive: Callable[[Signal], None] | None) -> None:
        """Receive the session's signals while its turn runs here; None ends it."""

    @abstractmethod
    async def run(self, handlers: Mapping[Topic, Handler]) -> None:
        """Call handlers until cancelled. An id woken while its handler runs is handled once more after it.

        When cancelled, no further handler starts and the running ones are cancelled and awaited.
        """
