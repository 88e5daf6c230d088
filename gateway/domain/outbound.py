"""What goes out: a message for a chat, the parts a platform shows it in, and the record of their delivery."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from gateway.domain.keys import Route
from gateway.domain.message import MediaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One answer a person can pick; `id` comes back when it is picked."""

    id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbound:
    """A message to show. `text` is Markdown; `only_for` shows it to one person where the platform can."""

    text: str
    choices: tuple[Choice, ...] = ()
    media: tuple[MediaRef, ...] = ()
    only_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One message of a platform, already rendered: `text`, and `details` only its channel understands.

    `plain` is the same words without any markup, sent once when the platform refuses the formatting.
    """

    text: str
    plain: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """A digest of what is shown, to tell a changed part from an unchanged one."""
        shown = json.dumps([self.text, self.details], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def as_plain(self) -> Part:
        """Return the part without markup: `details` holds `plain` then, and of the rest only who it is for."""
        only_for = {"only_for": self.details["only_for"]} if self.is_private else {}
        return Part(text=self.plain, plain=self.plain, details={"plain": True, **only_for})

    @property
    def is_private(self) -> bool:
        """Whether one person only is shown it."""
        return "only_for" in self.details

    @property
    def is_plain(self) -> bool:
        """Whether this is already the form without markup."""
        return bool(self.details.get("plain"))


class RefKind(StrEnum):
    """What a reference points at."""

    MESSAGE = "message"
    STREAM = "stream"
    DRAFT = "draft"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A message on a platform: its id there, and what it is."""

    id: str
    kind: RefKind = RefKind.MESSAGE


class DeliveryState(StrEnum):
    """How far a delivery has come."""

    PENDING = "pending"
    DONE = "done"
    DEAD = "dead"


class PartState(StrEnum):
    """How far one part has come.

    `OPENING` is written before the call that creates it: after a kill, it may be there.
    """

    WANTED = "wanted"
    OPENING = "opening"
    OPEN = "open"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery to be enqueued. `dedupe_key` makes a repeat of the same wish a no-op."""

    route: Route
    outbound: Outbound
    dedupe_key: str
    session_id: str | None = None
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """A part and what is known of it. `resent` counts the times it may have been shown twice."""

    delivery_id: str
    index: int
    state: PartState
    part: Part | None
    ref: Ref | None = None
    hash: str | None = None
    opening_since: datetime | None = None
    resent: int = 0

    @property
    def key(self) -> str:
        """The part's name on the platform, where the platform can carry one."""
        return f"{self.delivery_id}.{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A stored delivery with its parts.

    `outbound` is None once the body was dropped; parts are empty until rendered.
    """

    id: str
    route: Route
    state: DeliveryState
    created_at: datetime
    outbound: Outbound | None
    parts: tuple[StoredPart, ...] = ()
    session_id: str | None = None
    turn_id: str | None = None
    attempts: int = 0
    not_before: datetime | None = None
    error: str | None = None
