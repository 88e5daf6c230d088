"""What becomes of a message that comes while the bot is at work in its chat."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from gateway.domain.keys import SessionKey
from gateway.domain.turn import Backlog

LONGEST_SETTLE = 5
"""How many settle times a burst may last; somebody who never stops writing is answered in between."""


class Busy(StrEnum):
    """What a chat does with it; in each of them every message reaches the model once, in the platform's order.

    `steer` takes it into the running turn at the next tool boundary, else it is the next turn; `queue` always makes it
    the next turn; `burst` waits until nothing has come for a moment, and answers all of it in one turn; `interrupt`
    breaks off what the model or a tool is doing, and goes on with both.
    """

    STEER = "steer"
    QUEUE = "queue"
    BURST = "burst"
    INTERRUPT = "interrupt"

    @property
    def joins(self) -> bool:
        """Whether input is taken into a turn that runs."""
        return self in (Busy.STEER, Busy.INTERRUPT)


def settles_at(backlog: Backlog, settle: timedelta) -> datetime | None:
    """Return when a burst is over if nothing more comes; None where nothing waits, or a stop is among it."""
    if backlog.oldest is None or backlog.newest is None or backlog.stopped:
        return None
    return min(backlog.newest + settle, backlog.oldest + LONGEST_SETTLE * settle)


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyModes:
    """Which chat does what: the chat's own mode, else its channel's, else the one of all."""

    default: Busy = Busy.STEER
    by_channel: Mapping[str, Busy] = field(default_factory=dict)
    by_chat: Mapping[tuple[str, str], Busy] = field(default_factory=dict)

    def of(self, key: SessionKey) -> Busy:
        """Return the mode of a session's chat."""
        own = self.by_chat.get((key.channel, key.chat_id))
        return own or self.by_channel.get(key.channel, self.default)

    @property
    def has_bursts(self) -> bool:
        """Whether any chat lets bursts settle."""
        return Busy.BURST in (self.default, *self.by_channel.values(), *self.by_chat.values())
