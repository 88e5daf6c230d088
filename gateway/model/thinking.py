"""Thinking in the model library's form and in ours, both ways.

It goes back only to the provider it came from: as `reasoning_content` where the OpenAI style is spoken, as a signed
block at Anthropic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponsePart, ThinkingPart
from pydantic_ai.settings import ModelSettings

from gateway.domain.message import Message
from gateway.domain.text import whole
from gateway.model.options import ThinkingOption
from gateway.ports.model import Style, Thinking

REASONING = "reasoning_content"
REDACTED = "redacted_thinking"
REDACTED_PREFIX = f"{REDACTED}:"
"""Begins the signature of thinking that the provider keeps hidden: the port has no other place for it."""


def thinking_of(part: ModelResponsePart, provider: str) -> Thinking | None:
    """Return a finished part as thinking, or None if it is something else or empty."""
    if not isinstance(part, ThinkingPart) or not (part.content or part.signature):
        return None
    if part.id == REDACTED:
        return Thinking("", provider, f"{REDACTED_PREFIX}{part.signature}")
    return Thinking(whole(part.content), provider, part.signature or None)


def thinking_parts(row: Message, provider: str, style: Style) -> Iterator[ThinkingPart]:
    """Yield the thinking of a row that came from this provider, as its style takes it back."""
    blocks = [block for block in row.thinking_blocks if block.get("provider", row.provider) == provider]
    if style is Style.ANTHROPIC:
        yield from (part for block in blocks if (part := _signed(block, provider)))
        return
    text = row.reasoning_content if row.provider == provider else None
    text = text or "\n\n".join(said for block in blocks if isinstance(said := block.get("thinking"), str) and said)
    if text:
        # The id is the name of the field in which the library sends it back.
        yield ThinkingPart(content=whole(text), id=REASONING, provider_name=provider)


def replays_thinking(history: Sequence[ModelMessage]) -> bool:
    """Whether thinking is among what is sent."""
    return any(isinstance(part, ThinkingPart) for message in history for part in message.parts)


def with_thinking(settings: ModelSettings, thinking: ThinkingOption) -> ModelSettings:
    """Return the settings of a call with how much the model is to think; `auto` leaves that to the model."""
    if thinking == "auto":
        return settings
    return {**settings, "thinking": False if thinking == "off" else thinking}


def _signed(block: Mapping[str, Any], provider: str) -> ThinkingPart | None:
    signature, hidden = block.get("signature"), block.get("data")
    if isinstance(signature, str) and signature.startswith(REDACTED_PREFIX):
        hidden = signature.removeprefix(REDACTED_PREFIX)
    if isinstance(hidden, str) and hidden:
        return ThinkingPart(content="", id=REDACTED, signature=hidden, provider_name=provider)
    if isinstance(signature, str) and signature:
        return ThinkingPart(
            content=whole(str(block.get("thinking") or "")), signature=signature, provider_name=provider
        )
    return None
