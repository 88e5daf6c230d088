"""The contract of turns: the durable inbox, and the run of the model over what it holds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.inbound import Inbound
from gateway.domain.keys import SessionKey
from gateway.domain.message import MediaRef, Message
from gateway.domain.outbound import NewDelivery
from gateway.domain.turn import Backlog, Joined, Stopping, Turn, TurnState, Usage, Waiting
from gateway.ports.leases import Lease
from gateway.ports.sessions import NewSession


class Turns(ABC):
    """Keeps the inbox and the turns. Safe to share between tasks and processes; each verb is one durable transaction.

    Every verb that takes a lease raises `LeaseLost`, and changes nothing, if the lease is stale or the turn has ended.
    Once a stop was asked for, those that write for a turn raise `StopRequested`, and change nothing: it may only be
    ended as stopped or set aside, or be set down to be resumed.
    """

    @abstractmethod
    async def accept(self, inbound: Inbound, new: NewSession, *, most_waiting: int | None = None) -> str | None:
        """Store an event in the inbox of its key's session, opened from `new` if need be; return the session's id.

        Returns None, and changes nothing, for an event whose `dedupe_key` was accepted in this channel before (keys are
        remembered for 7 days). Raises `Overfull`, and changes nothing, where `most_waiting` events wait already. Only
        after this returns may the platform be told "received".
        """

    @abstractmethod
    async def begin(self, session_id: str, lease: Lease, *, suspects: bool = True) -> Turn | None:
        """Return the turn to run now, or None if there is nothing to do.

        An unfinished turn comes first: with `attempt` + 1 if its process died over it, with the same attempt if it was
        suspended to be resumed. Otherwise all pending input, in the platform's order of time, becomes user rows and a
        new turn. Where some of it was stopped while it waited, that alone makes a turn first, which says by whom. While
        a turn waits for something else, and nobody asked it to stop, there is nothing to do.

        Without `suspects`, a turn that was there when a process died, and would be run again, is returned as it stands,
        with the state `WAITING`, and not begun: nothing of it is counted or changed.
        """

    @abstractmethod
    async def join(self, turn: Turn, lease: Lease) -> Joined:
        """Move input that has come since into the running turn, in order; its answer goes to the newest of it."""

    @abstractmethod
    async def append_round(self, turn: Turn, lease: Lease, rows: Sequence[Message], usage: Usage | None) -> None:
        """Store the rows of a finished round, and what a call cost.

        Also without rows: for the cost alone, or only to find out whether the turn may still go on.
        """

    @abstractmethod
    async def consolidate(
        self,
        turn: Turn,
        lease: Lease,
        through: int,
        compaction: Mapping[str, Any],
        rows: Sequence[Message],
        *,
        revision: int | None = None,
        deliveries: Sequence[NewDelivery] = (),
    ) -> None:
        """Say that a summary stands for all rows up to `through`, and append the rows that mark the place.

        The cursor moves forward only: `Refused` for a place before the one it has, and, with the `revision` that the
        summary was made of, also where rows were hidden or moved meanwhile.
        """

    @abstractmethod
    async def suspend(self, turn: Turn, lease: Lease, waiting: Waiting, deliveries: Sequence[NewDelivery] = ()) -> None:
        """Set the turn down, to be resumed when what it waits for has come."""

    @abstractmethod
    async def finish(
        self,
        turn: Turn,
        lease: Lease,
        rows: Sequence[Message],
        deliveries: Sequence[NewDelivery],
        usage: Usage | None,
    ) -> None:
        """End the turn well: its last rows, deliveries, usage and state in one transaction."""

    @abstractmethod
    async def fail(
        self,
        turn: Turn,
        lease: Lease,
        outcome: TurnState,
        deliveries: Sequence[NewDelivery],
        *,
        rows: Sequence[Message] = (),
        usage: Usage | None = None,
    ) -> None:
        """End the turn as failed, stopped or set aside, with the note a person gets; the rows stored so far stay.

        `rows` are what there is of a round that was broken off. A turn that is stopped takes in what was stopped while
        it waited; the rows of one that is set aside are marked so, and not replayed any more.
        """

    @abstractmethod
    async def request_stop(self, ref: str | SessionKey, by: str, *, event: Inbound | None = None) -> Stopping:
        """Ask a session's unfinished turn to stop, and all that waits in its inbox not to be answered.

        `event` is what asked for it: remembered like an accepted one, so that a repeat of it stops nothing more, which
        is `REPEAT`. `REQUESTED` says that there is something to stop, also where somebody asked for that before, and
        `NOTHING` that there is not.
        """

    @abstractmethod
    async def backlog(self, session_id: str) -> Backlog:
        """Return what waits in the session's inbox."""

    @abstractmethod
    async def list(
        self, *, state: TurnState | None = None, session_id: str | None = None, limit: int = 100
    ) -> Sequence[Turn]:
        """Return turns, newest first; None does not filter."""

    @abstractmethod
    async def release_if_idle(self, session_id: str, lease: Lease) -> bool:
        """Give the lease back if `begin` would find nothing; return whether it was given back."""

    @abstractmethod
    async def due(self, channels: Sequence[str], limit: int) -> Sequence[str]:
        """Return ids of sessions of these channels that have work and no live lease, longest waiting first."""

    @abstractmethod
    async def keep_media(self, turn: Turn, lease: Lease, seq: int, media: Sequence[MediaRef]) -> None:
        """Say of a row of the turn where its files are now that they are kept; nothing else of it changes."""

    @abstractmethod
    async def counts(self, provider: str, model: str, limit: int) -> Sequence[tuple[int, int]]:
        """Return the input tokens of a model's latest calls, newest first: as we counted and as it reported them."""

    @abstractmethod
    async def latest_usage(self, session_id: str) -> Usage | None:
        """Return what the latest call with its history cost, or None if there was none."""

    @abstractmethod
    async def forget(self) -> int:
        """Drop the keys of finished events that are older than 7 days; return how many."""
