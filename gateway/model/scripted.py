"""A model that follows a script: for demonstrations, and for tests of everything above it.

A script is a JSON list of steps, one per call. A step is a text, or `{"when": "words", "events": [...]}`. Steps with
`when` answer every call whose last user message holds those words; the others are used up in order. Events:

    {"text": "Hello"}                        {"thinking": "hm", "signature": "s1"}
    {"tool": "add", "arguments": {"a": 1}, "id": "call_1"}
    {"usage": {"input_tokens": 3}}           {"finish": "length"}
    {"delay": 0.5}                           {"error": "unavailable", "retry_after": 3}

`finish` is `stop`, `length` or `tools`, or `filter` for an answer that a filter ends with `Filtered`. A script given
in Python may also hold `{"wait": asyncio.Event()}`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gateway.domain import errors
from gateway.domain.message import Message, Role
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
    Thinking,
    ToolCallRequested,
    UsageReported,
)

Step = str | Mapping[str, Any]
ERRORS: Mapping[str, type[errors.TrunklineError]] = {
    "overflow": errors.ContextOverflow,
    "unavailable": errors.Unavailable,
    "auth": errors.AuthFailed,
    "thinking": errors.ThinkingRefused,
    "filtered": errors.Filtered,
    "refused": errors.Refused,
}

FILTER = "filter"
FINISHES = ("stop", "length", "tools", FILTER)


class Scripted(Model):
    """Answers with the steps of a script. `requests` are the calls it got, oldest first."""

    def __init__(self, options: ModelOptions, steps: Sequence[Step], *, provider: str = "scripted") -> None:
        self._options = options
        self._steps = [step for step in steps if not _condition(step)]
        self._standing = [step for step in steps if _condition(step)]
        self._provider = provider
        self.requests: list[ModelRequest] = []

    @classmethod
    async def read(cls, options: ModelOptions, path: Path) -> Scripted:
        """Return the model of a script file; raise `Refused` if there is none or it is not a list."""
        try:
            steps = json.loads(await asyncio.to_thread(path.read_text, "utf-8"))
        except (OSError, ValueError) as error:
            raise errors.Refused(f"expected a JSON list of steps in the script {path.name}") from error
        if not isinstance(steps, list):
            raise errors.Refused(f"expected a JSON list of steps in the script {path.name}, got {type(steps).__name__}")
        return cls(options, steps)

    def info(self, model: str) -> ModelInfo:
        """Return the sizes of an unknown model."""
        return info(model, self._options)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of the next step, then the usage and the reason for finishing, or raise `Filtered`."""
        self.requests.append(request)
        name = self.info(request.model).name
        usage = Usage(provider=self._provider, model=name)
        reason, called = "", False
        for event in _events(self._next(request.messages)):
            if "usage" in event:
                usage = Usage(provider=self._provider, model=name, **event["usage"])
            elif "finish" in event:
                reason = event["finish"]
            else:
                await _pause(event)
                for said in self._said(event):
                    called = called or isinstance(said, ToolCallRequested)
                    yield said
        yield UsageReported(usage)
        yield _finish(reason or ("tools" if called else "stop"))

    async def complete(self, request: ModelRequest) -> str:
        """Return the text of the next step."""
        return await text_of_answer(self.stream(request))

    async def close(self) -> None:
        """Nothing is open."""

    def _next(self, messages: Sequence[Message]) -> Step:
        words = next((row.text for row in reversed(messages) if row.role is Role.USER), "")
        for step in self._standing:
            if _condition(step) in words:
                return step
        if not self._steps:
            raise errors.Refused("the script has no step left for this call")
        return self._steps.pop(0)

    def _said(self, event: Mapping[str, Any]) -> list[ModelEvent]:
        if "error" in event:
            raise _error(event)
        if "text" in event:
            return [TextDelta(piece) for piece in re.findall(r"\s*\S+\s*|\s+", event["text"])]
        if "thinking" in event:
            return [Thinking(event["thinking"], event.get("provider", self._provider), event.get("signature"))]
        if "tool" in event:
            arguments = event.get("arguments", {})
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            return [ToolCallRequested(event.get("id") or f"call_{len(self.requests)}", event["tool"], raw)]
        if "delay" in event or "wait" in event:
            return []
        raise errors.Refused(f"the script holds an event of no known kind: {sorted(event)}")


def _condition(step: Step) -> str:
    return "" if isinstance(step, str) else str(step.get("when", ""))


def _events(step: Step) -> Sequence[Mapping[str, Any]]:
    if isinstance(step, str):
        return [{"text": step}]
    events = step.get("events", [])
    return events if isinstance(events, list | tuple) else []


def _finish(reason: str) -> Finish:
    if reason == FILTER:
        raise errors.Filtered("as the script says")
    if reason not in FINISHES:
        raise errors.Refused(f"expected a finish of {', '.join(FINISHES)} in the script, got {reason!r}")
    return Finish(FinishReason(reason))


async def _pause(event: Mapping[str, Any]) -> None:
    if "delay" in event:
        await asyncio.sleep(event["delay"])
    if "wait" in event:
        await event["wait"].wait()


def _error(event: Mapping[str, Any]) -> errors.TrunklineError:
    kind = ERRORS.get(event["error"])
    if kind is None:
        return errors.Refused(f"expected an error of {', '.join(ERRORS)} in the script, got {event['error']!r}")
    message = event.get("message", "as the script says")
    if kind is errors.Unavailable:
        return errors.Unavailable(message, retry_after=event.get("retry_after"))
    return kind(message)
