"""What comes from the model library while an answer is streamed, as events of the port."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)

from gateway.domain.errors import Filtered, Unavailable
from gateway.domain.text import whole
from gateway.domain.turn import Usage
from gateway.model.calls import call_of, is_object
from gateway.model.thinking import thinking_of
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelInfo,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)

REASONS = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH, "tool_call": FinishReason.STOP}
FILTER = "content_filter"
"""How the library spells a provider's filter and a model's refusal."""


class Joiner:
    """Joins a character whose halves come in two pieces of a stream."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return what can be shown now; the first half of a character waits for the second."""
        text, self._half = self._half + piece, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole(text)

    def end(self) -> str:
        """Return what is left over once no more comes."""
        return whole(self._half)


def event_of(event: ModelResponseStreamEvent, provider: str, joiner: Joiner) -> ModelEvent | None:
    """Return what can be told of the answer at once: words, or thinking that is finished."""
    text = ""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        text = joiner.add(event.part.content)
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        text = joiner.add(event.delta.content_delta)
    elif isinstance(event, PartEndEvent):
        return thinking_of(event.part, provider)
    return TextDelta(text) if text else None


def closing_events(response: ModelResponse, info: ModelInfo, label: str) -> Iterator[ModelEvent]:
    """Yield the calls, the usage and the finish of an answer that has ended.

    Raises `Filtered` after the usage if a filter or a refusal ended it; its calls are not what the model wanted.
    """
    if response.finish_reason == FILTER:
        yield _usage(response, info)
        raise Filtered(f"the content filter of {label} stopped the answer")
    reason = _reason(response, label)
    calls = [call for part in response.parts if (call := call_of(part)) and _is_whole(call, reason)]
    yield from calls
    yield _usage(response, info)
    yield Finish(FinishReason.TOOLS if calls and reason is FinishReason.STOP else reason)


def _usage(response: ModelResponse, info: ModelInfo) -> UsageReported:
    usage = response.usage
    return UsageReported(
        Usage(
            provider=info.provider,
            model=info.name,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            written_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        )
    )


def _reason(response: ModelResponse, label: str) -> FinishReason:
    if response.finish_reason in REASONS:
        return REASONS[response.finish_reason]
    raw = (response.provider_details or {}).get("finish_reason")
    if raw is None or response.finish_reason == "error":
        raise Unavailable(f"the answer of {label} broke off")
    return FinishReason.STOP


def _is_whole(call: ToolCallRequested, reason: FinishReason) -> bool:
    """Whether the call may be run: one that was cut off in its arguments is not what the model wanted."""
    return reason is not FinishReason.LENGTH or is_object(call.arguments)
