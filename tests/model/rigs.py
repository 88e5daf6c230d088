"""What the model contract suite needs of a model: a way to say what it answers next, and how it fails."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from gateway.domain.message import Message, Role
from gateway.model.options import ModelOptions
from gateway.model.router import Models
from gateway.ports.model import (
    Finish,
    Model,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
)
from gateway.ports.tools import ToolSpec
from gateway.turns.answer import gather
from tests.loopback.models import Answer, Asked, Fault, ModelServer
from tests.stores import count_words

SECRET = "sk-very-secret-key"
ADD = ToolSpec(name="add", description="Adds.", schema={"type": "object", "properties": {"a": {"type": "integer"}}})
ERRORS = {
    Fault.OVERFLOW: "overflow",
    Fault.OVERLOADED: "unavailable",
    Fault.RATE_LIMITED: "unavailable",
    Fault.UNAUTHORIZED: "auth",
    Fault.THINKING_REFUSED: "thinking",
    Fault.FILTER_REFUSED: "filtered",
    Fault.REFUSED: "refused",
}
"""The faults that every model can have, and what a script calls them."""


class ModelRig(ABC):
    """A model, its id, and the lever for what it does next."""

    model: Model
    id: str
    provider: str

    @abstractmethod
    def does(self, *steps: Answer | Fault) -> None:
        """Set what the next calls get, in order."""

    def request(self, *rows: Message, **given: Any) -> ModelRequest:
        """Return a request to this model."""
        return ModelRequest(**{"model": self.id, "messages": rows or (user("Hello"),), **given})


class ScriptedRig(ModelRig):
    """The built-in model that follows a file."""

    provider = "scripted"

    def __init__(self, folder: Path) -> None:
        self._path = folder / "script.json"
        self.id = f"scripted:{self._path}"
        self.model = Models(ModelOptions(), {}, count=count_words)
        self.does(*[Answer(text="first words and more")] * 3)

    def does(self, *steps: Answer | Fault) -> None:
        """Write the script; it is read at the first call."""
        self._path.write_text(json.dumps([{"events": _events(step)} for step in steps]))


class ProviderRig(ModelRig):
    """A provider behind the loopback server."""

    def __init__(self, server: ModelServer, id: str, **settings: Any) -> None:
        self.server = server
        self.id = id
        self.provider = id.partition(":")[0]
        self._answers: deque[Answer] = deque()
        self.model = models(server, **settings)
        server.answer = self._answer

    def does(self, *steps: Answer | Fault) -> None:
        """Queue answers and faults; the server judges the history before either."""
        for step in steps:
            if isinstance(step, Fault):
                self.server.fail_next(step)
            else:
                self._answers.append(step)

    def _answer(self, _: Asked) -> Answer:
        return self._answers.popleft() if self._answers else Answer(text="first words and more")


def models(server: ModelServer, **settings: Any) -> Models:
    """Return the gateway's model with the loopback server as each kind of provider."""
    providers = {
        "openai": {"api_key": SECRET, "base_url": server.openai_url},
        "local": {"base_url": server.openai_url},
        "anthropic": {"api_key": SECRET, "base_url": server.anthropic_url},
    }
    given = {"retries": 0, "timeout_seconds": 20, "providers": providers, **settings}
    return Models(ModelOptions.model_validate(given), {}, count=count_words)


def asking(model: str) -> ModelRequest:
    """Return a first request to a model."""
    return ModelRequest(model=model, messages=[user("Hello")])


def user(text: str) -> Message:
    """Return a row of a person."""
    return Message(role=Role.USER, content=text)


def result(call: ToolCallRequested, text: str) -> Message:
    """Return a row with the result of a call."""
    return Message(role=Role.TOOL, content=text, tool_call_id=call.id, name=call.name)


async def answer_row(events: Sequence[ModelEvent]) -> Message:
    """Return the row that a turn keeps of an answer."""

    async def again() -> AsyncGenerator[ModelEvent, None]:
        for event in events:
            yield event

    return (await gather(again())).as_row()


def text_of(events: Sequence[ModelEvent]) -> str:
    """Return the text of an answer."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


async def heard(model: Model, request: ModelRequest, into: list[ModelEvent] | None = None) -> list[ModelEvent]:
    """Return all events of an answer; `into` holds those that came before an error."""
    events: list[ModelEvent] = [] if into is None else into
    async for event in model.stream(request):
        events.append(event)
    return events


def finish_of(events: Sequence[ModelEvent]) -> Finish:
    """Return the last event, which is the only finish."""
    (finish,) = [event for event in events if isinstance(event, Finish)]
    assert events[-1] is finish
    return finish


def _events(step: Answer | Fault) -> list[dict[str, Any]]:
    if isinstance(step, Fault):
        said = [{"text": "first "}] if step not in ERRORS else []
        return [*said, {"error": ERRORS.get(step, "unavailable"), "retry_after": 7}]
    events: list[dict[str, Any]] = [{"thinking": step.thinking, "signature": "signed"}] if step.thinking else []
    events += [{"text": step.text}] if step.text else []
    events += [{"tool": call.name, "arguments": call.arguments, "id": call.id} for call in step.calls]
    tokens = {"input_tokens": step.input_tokens or 1, "output_tokens": step.output_tokens or 1}
    events.append({"usage": {**tokens, "cached_tokens": step.cached_tokens, "written_tokens": step.written_tokens}})
    return [*events, *([{"finish": step.finish}] if step.finish != "stop" else [])]
