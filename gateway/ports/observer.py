"""The contract of events: what the gateway tells about its work as it happens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened. A durable event is given an id that grows; one that is not, a text delta, has None."""

    kind: str
    session_key: str = ""
    channel: str = ""
    chat_id: str = ""
    message_id: str = ""
    turn_id: str = ""
    origin_label: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    is_durable: bool = True
    id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to follow; None fields do not filter."""

    session_key: str | None = None
    kind: str | None = None

    def takes(self, event: Event) -> bool:
        """Whether the event is one of those that are followed."""
        return self.session_key in (None, event.session_key) and self.kind in (None, event.kind)


class Observer(ABC):
    """Takes events and shows them to those who follow. Emitting never fails and never waits on a follower."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Tell of an event."""

    @abstractmethod
    def follow(self, after_id: int | None, filter: EventFilter) -> AsyncIterator[Event]:
        """Yield the durable events after `after_id` that are still kept, then all that happen, until closed.

        With None it begins with what happens next, once the first event is asked for.
        """
