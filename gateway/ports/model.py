"""The contract of a language model: one request in, a stream of typed events out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain import turn
from gateway.domain.message import PICTURE_TOKENS, Message
from gateway.ports.tools import ToolSpec


class Style(StrEnum):
    """Whose rules a history must follow."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What a model can do. `window` and `max_output` are in tokens."""

    provider: str
    name: str
    window: int
    max_output: int
    style: Style
    vision: bool = False
    tools: bool = True
    thinking: bool = True
    """Whether its own thinking may be sent back to it."""
    writes: bool = True
    """Whether it can be asked to write something new; the built-in models only repeat."""


@dataclass(frozen=True, slots=True)
class Picture:
    """The bytes of a picture, of a type that every provider takes."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """What is sent after the messages and is another each turn, so that what stands before it can be cached."""

    text: str = ""
    pictures: Sequence[Picture] = ()

    @property
    def picture_tokens(self) -> int:
        """What the pictures are taken to cost; providers scale them to about this."""
        return PICTURE_TOKENS * len(self.pictures)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One call. `messages` are legal for the model's style; `system` is never among them.

    `counted_tokens` is what we count all of it as, to be compared with what is reported.
    """

    model: str
    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    max_output: int | None = None
    tail: Tail = Tail()
    counted_tokens: int = 0


class FinishReason(StrEnum):
    """Why the model stopped."""

    STOP = "stop"
    LENGTH = "length"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """A finished block of thinking, kept with the provider that can read it and its signature."""

    text: str
    provider: str
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A finished call; `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the call cost, and which provider and model really answered."""

    usage: turn.Usage


@dataclass(frozen=True, slots=True)
class Finish:
    """The last event of every stream that was not broken off."""

    reason: FinishReason


ModelEvent = TextDelta | Thinking | ToolCallRequested | UsageReported | Finish


class Model(ABC):
    """Answers requests for any model id it knows. Holds no history. Safe to share between tasks.

    Both calling verbs raise `ContextOverflow`, `Unavailable`, `AuthFailed`, `ThinkingRefused`, `Filtered`, or
    `Refused` for a request no retry can mend. Retries and time limits are the implementation's, set once; nothing is
    retried after the first event.
    """

    @abstractmethod
    def info(self, model: str) -> ModelInfo:
        """Return what is known of the model; raise `Refused` if the id cannot be served."""

    @abstractmethod
    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of the answer: exactly one `UsageReported`, then `Finish`, at the end."""

    @abstractmethod
    async def complete(self, request: ModelRequest) -> str:
        """Return the text of the answer."""

    @abstractmethod
    async def close(self) -> None:
        """Close connections."""
