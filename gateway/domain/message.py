"""One row of a session's transcript, shaped like a message of OpenAI's chat API with what we keep beside it.

The content of a stored row never changes; what hides it is a mark, kept apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = 1
TOKENS_PER_MESSAGE = 4
"""What a message costs beyond its text (role and delimiters), as OpenAI counts chat messages."""


PICTURE_TOKENS = 1_600
"""What a picture is taken to cost, whatever its size: providers scale it down to about this (Anthropic's figure)."""


KEPT = "m_"
"""What a reference of the media store begins with; no platform's does."""


class Role(StrEnum):
    """Who speaks in a row."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Kind(StrEnum):
    """What a row is for; decisions are made by kind, never by matching text."""

    CHAT = "chat"
    COMMAND = "command"
    NOTICE = "notice"
    DELIVERY = "delivery"
    ANNOUNCEMENT = "announcement"
    COMPACTED = "compacted"
    INTERRUPTED = "interrupted"


class Mark(StrEnum):
    """Why a stored row is hidden."""

    DELETED = "deleted"
    UNDONE = "undone"
    SUPERSEDED = "superseded"
    REFUSED = "refused"
    SET_ASIDE = "set aside"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The model's wish to run a tool; `arguments` is the JSON text exactly as it came."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Who wrote a message: the platform's stable id, and a name for people only."""

    id: str
    name: str = ""
    is_bot: bool = False
    shared: bool = False
    """Whether others read and write there too, so that the model must be told who speaks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRef:
    """A file that came with a message. `ref` is opaque: the channel's until it is fetched, the media store's after.

    It is empty for a file whose bytes are not kept anywhere, of which only the name is known.
    """

    ref: str
    kind: str
    name: str = ""
    mime: str = ""
    size_bytes: int | None = None
    width: int | None = None
    height: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether its bytes are in the media store, and not only with the channel it came from."""
        return self.ref.startswith(KEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Something named that came with a message besides files, such as an app the person picked.

    `kind` is how people call such things (`CLI App`); `details` are short facts about it, in the order to be shown.
    """

    kind: str
    name: str
    details: Mapping[str, str] = field(default_factory=dict)


Content = str | Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A stored row. `seq` is 0 until the store gives it its place; `tokens` is None until it is counted."""

    role: Role
    content: Content = None
    kind: Kind = Kind.CHAT
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    thinking_blocks: tuple[Mapping[str, Any], ...] = ()
    seq: int = 0
    v: int = SCHEMA_VERSION
    turn_id: str | None = None
    provider: str | None = None
    model: str | None = None
    sender: Sender | None = None
    media: tuple[MediaRef, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    runtime_context: str | None = None
    event_id: str | None = None
    created_at: datetime | None = None
    tokens: int | None = None
    marks: frozenset[Mark] = frozenset()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The words of the row, without pictures or calls."""
        return text_of(self.content)


def text_of(content: Content) -> str:
    """Return the text of a row's content: itself, or its text blocks joined by line breaks."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(
        text
        for block in content
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(text := block.get("text"), str)
    )


def pictures_in(message: Message) -> int:
    """Return how many pictures stand in a row itself, which cost the same whatever their size."""
    if message.content is None or isinstance(message.content, str):
        return 0
    return sum(_is_picture(block) for block in message.content)


def _is_picture(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") in ("image_url", "image")


def countable_text(message: Message) -> str:
    """Return everything of a row that costs the model tokens, as one text to count.

    Thinking signatures are left out: providers do not bill them as input text.
    """
    pieces = [message.text, message.name or "", message.tool_call_id or "", message.reasoning_content or ""]
    pieces += [f"{call.id} {call.name} {call.arguments}" for call in message.tool_calls]
    if message.content is not None and not isinstance(message.content, str):
        pieces += [
            json.dumps(block, ensure_ascii=False, default=str)
            for block in message.content
            if not (_is_picture(block) or (isinstance(block, Mapping) and block.get("type") == "text"))
        ]
    pieces += [text for block in message.thinking_blocks if isinstance(text := block.get("thinking"), str)]
    return "\n".join(piece for piece in pieces if piece)
