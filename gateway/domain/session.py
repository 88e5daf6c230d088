"""The header of a session: what is known of a conversation besides its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateway.domain.keys import SessionKey
from gateway.domain.origins import Origin, origin_label
from gateway.domain.titles import TitleSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A frozen header. A turn updates only the columns that belong to it."""

    id: str
    key: SessionKey
    created_at: datetime
    updated_at: datetime
    workspace: str = ""
    agent: str = ""
    model: str = ""
    mode: str = ""
    title: str = ""
    title_source: TitleSource = TitleSource.NONE
    preview: str = ""
    message_count: int = 0
    closed_at: datetime | None = None
    extra_roots: tuple[Mapping[str, Any], ...] = ()
    grants: Mapping[str, Any] = field(default_factory=dict)
    pinned: bool = False
    archived: bool = False
    origin: Origin | None = None
    parent_id: str | None = None
    consolidated_through: int = 0
    replay_from: int = 0
    revision: int = 0
    compaction: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def origin_label(self) -> str:
        """The origin as people know it, or an empty text."""
        return origin_label(self.origin) if self.origin else ""

    @property
    def title_edited(self) -> bool:
        """Whether somebody wrote the title; such a one is never replaced."""
        return self.title_source is TitleSource.EDITED
