"""Kills this process at a step: before, in or after the n-th call of a verb of a port.

    STEP="Turns.append_round:before:2"    # SIGKILL before what the second round has learned is stored
    STEP="Model.stream:event:3"           # … once the model has sent three events, over all its answers
    STEP="Tools.call:inside:1"            # … when the first tool has had its effect, and has not returned
    STEP="Channel.post:before:1:SIGTERM"  # asks for a stop in good order instead

The verbs are wrapped where they are implemented, from outside; all that they do is real.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from channels.slack.adapter import SlackChannel
from channels.telegram.adapter import TelegramChannel
from gateway.model.router import Models
from gateway.store.outbox import SqlOutbox
from gateway.store.turns import SqlTurns
from tests.acceptance.tools import ScriptedTools

IMPLEMENTED: Mapping[str, tuple[type, ...]] = {
    "Turns": (SqlTurns,),
    "Outbox": (SqlOutbox,),
    "Model": (Models,),
    "Tools": (ScriptedTools,),
    "Channel": (SlackChannel, TelegramChannel),
}
"""Where each port's verbs are; one count goes over all of a port's implementations."""

Verb = Callable[..., Awaitable[Any]]
Stream = Callable[..., AsyncGenerator[Any, None]]


@dataclass
class Step:
    """A place in the run of a process, and the signal it is sent there."""

    port: str
    verb: str
    when: str
    number: int
    signal: signal.Signals = signal.SIGKILL
    _counted: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Step:
        """Read `Port.verb:when:number`, with the name of another signal behind it or not."""
        place, when, number, *other = text.split(":")
        port, verb = place.split(".")
        return cls(port, verb, when, int(number), signal.Signals[other[0]] if other else signal.SIGKILL)

    def reached(self, when: str) -> None:
        """Count that a place was reached, and strike at the one that is meant."""
        self._counted[when] = self._counted.get(when, 0) + 1
        if when == self.when and self._counted[when] == self.number:
            os.kill(os.getpid(), self.signal)


def arm(text: str) -> None:
    """Let this process strike itself at a step."""
    step = Step.parse(text)
    if step.when == "inside":
        ScriptedTools.has_acted = functools.partial(step.reached, "inside")
        return
    around = _around_stream if step.verb == "stream" else _around
    for implementation in IMPLEMENTED[step.port]:
        setattr(implementation, step.verb, around(getattr(implementation, step.verb), step))


def _around(verb: Verb, step: Step) -> Verb:
    @functools.wraps(verb)
    async def call(*arguments: Any, **named: Any) -> Any:
        step.reached("before")
        result = await verb(*arguments, **named)
        step.reached("after")
        return result

    return call


def _around_stream(verb: Stream, step: Step) -> Stream:
    @functools.wraps(verb)
    async def stream(*arguments: Any, **named: Any) -> AsyncGenerator[Any, None]:
        step.reached("before")
        async with aclosing(verb(*arguments, **named)) as events:
            async for event in events:
                step.reached("event")
                yield event
        step.reached("after")

    return stream
