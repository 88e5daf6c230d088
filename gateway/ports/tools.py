"""The contract of tools: what the model may ask for, and the answer it gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.domain.message import MediaRef, ToolCall
from gateway.domain.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it. `side_effects` says that running it twice is not the same as once."""

    name: str
    description: str
    schema: Mapping[str, Any]
    side_effects: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """On whose behalf a tool runs."""

    session: Session
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gave back; an error is told to the model as a result like any other."""

    text: str
    media: tuple[MediaRef, ...] = ()
    is_error: bool = False


class Tools(ABC):
    """Offers tools to a session and runs them. Safe to share between tasks."""

    @abstractmethod
    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        """Return the tools of this session, always in the same order."""

    @abstractmethod
    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run one call. A failure of the tool, an unknown name and bad arguments are results with `is_error`."""
