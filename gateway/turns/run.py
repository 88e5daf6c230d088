"""One turn as it is run: whose it is, what has been tried in it, and what of it is not stored yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.turn import Turn, Usage
from gateway.ports.leases import Lease
from gateway.ports.tools import ToolSpec
from gateway.turns.breaks import Breaks
from gateway.turns.calling import Calling
from gateway.turns.effort import Effort


@dataclass(slots=True, kw_only=True)
class Run:
    """What the parts of a turn share. `turn` is replaced when input joins it."""

    turn: Turn
    lease: Lease
    breaks: Breaks
    specs: Sequence[ToolSpec] = ()
    has_files: bool = False
    """Whether files came with what was said or with a result of a tool."""
    effort: Effort = field(default_factory=Effort)
    interruptions: int = 0
    """How often input broke it off since the last round of tools."""
    left_open: Sequence[Message] = ()
    """Results for calls that a dead process left without any."""
    calling: Calling | None = None
    """The calls of the round that runs, until their results are stored."""
    usage: Usage | None = None
    """What a call of the model cost, until that is stored."""

    @property
    def session(self) -> Session:
        """The session it is run over, as it was when the turn began."""
        return self.turn.session

    def unstored(self) -> Sequence[Message]:
        """Return what there is of a round that is broken off."""
        return self.left_open if self.calling is None else self.calling.rows()
