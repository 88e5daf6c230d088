"""Gathering a model's stream of events into one answer, and the row it is stored as."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.errors import ModelUnavailable, Unavailable
from gateway.domain.message import Kind, Message, Role, ToolCall
from gateway.domain.scrub import for_people
from gateway.domain.turn import Usage
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    TextDelta,
    Thinking,
    ToolCallRequested,
    UsageReported,
)

SILENCE = "NO_REPLY"
"""What a model says to say nothing, as the whole of its answer; the word is the one that agents commonly know."""
_VISIBLE = "LNPS"
"""The categories of letters, numbers, punctuation and symbols; spaces, controls and joiners alone are no answer."""


@dataclass(slots=True)
class Answer:
    """What a model said in one round."""

    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    thinking: list[Thinking] = field(default_factory=list)
    usage: Usage | None = None
    reason: FinishReason = FinishReason.STOP
    _shown: tuple[str, str] = ("", "")
    """A text, and what a person sees of it; that is asked for again and again."""

    @property
    def shown(self) -> str:
        """What a person sees of it: nothing of our machinery, and no thinking."""
        if self._shown[0] != self.text:
            self._shown = (self.text, for_people(self.text))
        return self._shown[1]

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to show and nothing to run; such an answer is never stored."""
        return not self.calls and not any(unicodedata.category(character)[0] in _VISIBLE for character in self.shown)

    @property
    def is_silence(self) -> bool:
        """Whether the model chose to say nothing: the marker is the whole of its answer."""
        return not self.calls and self.shown.strip() == SILENCE

    def continued(self, more: Answer) -> Answer:
        """Return the answer with what came after its cut."""
        return Answer(
            text=self.text + more.text,
            calls=[*self.calls, *more.calls],
            thinking=[*self.thinking, *more.thinking],
            usage=more.usage,
            reason=more.reason,
        )

    def as_row(self) -> Message:
        """Return the assistant row.

        Signed thinking is kept as blocks and unsigned as text, both to be replayed to their own provider only.
        """
        signed = [block for block in self.thinking if block.signature is not None]
        unsigned = [block.text for block in self.thinking if block.signature is None]
        return Message(
            role=Role.ASSISTANT,
            kind=Kind.CHAT,
            content=self.text or None,
            tool_calls=tuple(self.calls),
            reasoning_content="\n\n".join(unsigned) or None,
            thinking_blocks=tuple(_block(block) for block in signed),
            provider=self.usage.provider if self.usage else None,
            model=self.usage.model if self.usage else None,
        )


async def gather(events: AsyncGenerator[ModelEvent, None]) -> Answer:
    """Read the stream to its end. Whatever breaks it off is raised, and nothing of the answer is kept."""
    answer = Answer()
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                _add(answer, event)
    except Unavailable as error:
        raise ModelUnavailable(str(error), retry_after=error.retry_after) from error
    return answer


def _add(answer: Answer, event: ModelEvent) -> None:
    match event:
        case TextDelta(text):
            answer.text += text
        case Thinking():
            answer.thinking.append(event)
        case ToolCallRequested(id, name, arguments):
            answer.calls.append(ToolCall(id=_unique(answer, id), name=name, arguments=arguments))
        case UsageReported(usage):
            answer.usage = usage
        case Finish(reason):
            answer.reason = reason


def _unique(answer: Answer, id: str) -> str:
    """Return an id that no other call of the answer has; some servers give the same one twice, or none."""
    taken = {call.id for call in answer.calls}
    if id and id not in taken:
        return id
    return next(made for n in itertools.count(len(taken)) if (made := f"{id or 'call'}_{n}") not in taken)


def _block(thinking: Thinking) -> dict[str, Any]:
    return {"type": "thinking", "thinking": thinking.text, "signature": thinking.signature}
