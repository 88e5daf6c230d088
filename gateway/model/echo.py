"""A model without a key: it answers with what it was given, so that a person can see what a model would be sent."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from gateway.domain.message import TOKENS_PER_MESSAGE, Message, countable_text
from gateway.domain.turn import Usage
from gateway.model.answers import text_of_answer
from gateway.model.options import ModelOptions
from gateway.model.windows import info
from gateway.ports.model import (
    Finish,
    FinishReason,
    Model,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from gateway.ports.tokens import TokenCounter

LINE = 200
"""The most characters shown of one message."""


class Echo(Model):
    """Answers with the number of messages and tokens, the first line of the first message, and the last message."""

    def __init__(self, options: ModelOptions, count: TokenCounter) -> None:
        self._options = options
        self._count = count

    def info(self, model: str) -> ModelInfo:
        """Return the sizes of an unknown model."""
        return info(model, self._options)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer line by line."""
        tokens = self._tokens(request)
        answer = _answer(request.messages, tokens)
        for piece in re.findall(r".*\n|.+", answer):
            yield TextDelta(piece)
        spent = Usage(provider="echo", model="echo", input_tokens=tokens, output_tokens=self._count(answer))
        yield UsageReported(spent)
        yield Finish(FinishReason.STOP)

    async def complete(self, request: ModelRequest) -> str:
        """Return the answer as one text."""
        return await text_of_answer(self.stream(request))

    async def close(self) -> None:
        """Nothing is open."""

    def _tokens(self, request: ModelRequest) -> int:
        rows = sum(TOKENS_PER_MESSAGE + self._count(countable_text(row)) for row in request.messages)
        return rows + self._count(request.system)


def _answer(messages: Sequence[Message], tokens: int) -> str:
    many = "message" if len(messages) == 1 else "messages"
    head = f"echo: {len(messages)} {many}, {tokens} tokens"
    if not messages:
        return head
    first = next(iter(messages[0].text.splitlines()), "")
    return f"{head}\nfirst: {_cut(first)}\nlast: {_cut(messages[-1].text)}"


def _cut(text: str) -> str:
    return text if len(text) <= LINE else f"{text[:LINE]}…"
