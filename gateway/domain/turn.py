"""A turn: one run of the model over a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, Message, Role
from gateway.domain.session import Session


class TurnState(StrEnum):
    """Where a turn stands."""

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    SET_ASIDE = "set aside"


RESUME = "resume"
"""What a turn waits for that was given back on purpose, to be gone on with by whoever is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What a suspended turn waits for: `resume`, a choice or a child, and the details of it.

    It goes on by itself at `until`, and with `or_message` also when something else is said.
    """

    reason: str
    details: Mapping[str, Any] = field(default_factory=dict)
    until: datetime | None = None
    or_message: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A claimed turn. `attempt` is 1 at first and grows each time a process died over it.

    `session` is the header as it was when the turn was read. `route` is where its answer goes: the newest message it
    answers. `first_seq` is the seq of its first row.
    """

    id: str
    session: Session
    route: Route
    attempt: int
    state: TurnState
    started_at: datetime
    first_seq: int
    message_id: str = ""
    """The key of that message, as its event was named when it came in."""
    stop_requested_by: str | None = None
    waited: Waiting | None = None
    """What it had waited for when it was begun this time, if for anything."""

    @property
    def reference(self) -> str:
        """What a person is told to name the turn by; the log has the whole id."""
        return self.id[:8]

    @property
    def session_id(self) -> str:
        """The session it is run over."""
        return self.session.id

    @property
    def key(self) -> SessionKey:
        """The chat it answers."""
        return self.session.key


def stop_row() -> Message:
    """Return the row by which model and people see that the answer to what stands before it was stopped."""
    return Message(role=Role.USER, kind=Kind.INTERRUPTED, content="(Stopped before it was answered.)")


@dataclass(frozen=True, slots=True)
class Joined:
    """Input that was moved into a running turn: the rows it became, and the turn as it stands with them."""

    turn: Turn
    rows: Sequence[Message]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits in a session's inbox: how much, how much of it was stopped, and when the first and last came."""

    count: int = 0
    stopped: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


class Stopping(StrEnum):
    """What a request to stop found."""

    REQUESTED = "requested"
    NOTHING = "nothing to stop"
    REPEAT = "a repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one model call as the provider reported them."""

    provider: str
    model: str
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    counted_tokens: int = 0
    """What we had counted the input to be, before the call."""
