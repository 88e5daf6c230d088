"""Fakes that implement ports: a channel whose platform is a list, and a model whose answers are a queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import datetime

from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.domain.turn import Usage
from gateway.ports.channel import Capabilities, Channel, Health, HttpRoute, Presence, Sink
from gateway.ports.model import (
    Finish,
    FinishReason,
    Model,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Style,
    TextDelta,
    UsageReported,
)

Step = str | tuple[str, FinishReason] | BaseException | Sequence[ModelEvent | str | BaseException]
"""What the fake model does next: say it, say it and stop for a reason, raise it, or do several things one by one."""


class FakeChannel(Channel):
    """Shows parts in a list. `faults` are raised by the next posts, in order; a fault may apply the post first."""

    kind = "fake"

    def __init__(self, name: str = "fake", capabilities: Capabilities | None = None, part_size: int = 1000) -> None:
        self.name = name
        self.capabilities = capabilities or Capabilities()
        self.part_size = part_size
        self.shown: list[tuple[Route, Part, str]] = []
        self.faults: list[tuple[BaseException | None, bool]] = []
        self.find_error: Exception | None = None
        self.sink: Sink | None = None
        self.received = asyncio.Event()
        self.opened = 0
        self.closed = 0
        self.open_errors: list[BaseException] = []
        self.http_routes: list[HttpRoute] = []
        self.signs: list[tuple[str, Presence]] = []
        self.presence_errors: list[Exception] = []
        self.slow_presence: asyncio.Event | None = None

    @property
    def texts(self) -> list[str]:
        """What a person sees, in order."""
        return [part.text for _, part, _ in self.shown]

    def fail(self, error: BaseException, *, applied: bool = False, after: int = 0) -> None:
        """Let a post raise, after showing the part if `applied`; `after` posts go well before it."""
        self.faults += [(None, True)] * after
        self.faults.append((error, applied))

    async def open(self) -> None:
        if self.open_errors:
            raise self.open_errors.pop(0)
        self.opened += 1

    async def close(self) -> None:
        self.closed += 1

    async def receive(self, sink: Sink) -> None:
        self.sink = sink
        self.received.set()
        await asyncio.get_running_loop().create_future()

    def routes(self) -> Sequence[HttpRoute]:
        return self.http_routes

    def render(self, outbound: Outbound) -> Sequence[Part]:
        text, size = outbound.text, self.part_size
        details = {"only_for": outbound.only_for} if outbound.only_for else {}
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        return [Part(text=piece, plain=f"plain {piece}", details=details) for piece in pieces if piece.strip()]

    async def presence(self, route: Route, state: Presence) -> None:
        if self.slow_presence is not None:
            await self.slow_presence.wait()
        self.signs.append((route.chat_id, state))
        if self.presence_errors:
            raise self.presence_errors.pop(0)

    async def answer(self, choice: Inbound, reply: str) -> None:
        raise Refused("the fake channel has no choices")

    async def fetch(self, ref: MediaRef, max_bytes: int) -> AsyncIterator[bytes]:
        yield b""

    def health(self) -> Health:
        return Health(receiving=self.received.is_set())

    async def post(self, to: Route, part: Part, key: str, live: bool) -> Ref:
        await asyncio.sleep(0)
        if not self.faults:
            return self._show(to, part, key)
        error, applied = self.faults.pop(0)
        ref = self._show(to, part, key) if applied else Ref(id="")
        if error is not None:
            raise error
        return ref

    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str, live: bool) -> Ref:
        self.shown[int(ref.id)] = (to, part, key)
        return ref

    async def drop(self, to: Route, ref: Ref) -> None:
        del self.shown[int(ref.id)]

    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        if not self.capabilities.find:
            raise Refused("the fake channel cannot be asked")
        if self.find_error is not None:
            raise self.find_error
        return next((Ref(id=str(n)) for n, (_, _, shown) in enumerate(self.shown) if shown == key), None)

    def _show(self, to: Route, part: Part, key: str) -> Ref:
        self.shown.append((to, part, key))
        return Ref(id=str(len(self.shown) - 1))


class FakeModel(Model):
    """Does what `steps` say, in order, and then answers every request with what `otherwise` makes of it."""

    def __init__(self, *steps: Step, window: int = 1000) -> None:
        self.steps: list[Step] = list(steps)
        self.requests: list[ModelRequest] = []
        self.window = window
        self.input_tokens = 1
        self.otherwise: Callable[[ModelRequest], str] = lambda request: f"answer to {request.messages[-1].text}"
        self.gate = asyncio.Event()
        self.gate.set()

    def info(self, model: str) -> ModelInfo:
        return ModelInfo(
            provider="fake", name=model, window=self.window, max_output=100, style=Style.OPENAI, vision=True
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        await self.gate.wait()
        step = self.steps.pop(0) if self.steps else self.otherwise(request)
        reason = FinishReason.STOP if isinstance(step, str | BaseException) else FinishReason.TOOLS
        if isinstance(step, tuple) and isinstance(step[1], FinishReason):
            step, reason = step
        for piece in [step] if isinstance(step, str | BaseException) else step:
            if isinstance(piece, BaseException):
                raise piece
            yield TextDelta(piece) if isinstance(piece, str) else piece
        yield UsageReported(
            Usage(provider="fake", model=request.model, input_tokens=self.input_tokens, output_tokens=1)
        )
        yield Finish(reason)

    async def complete(self, request: ModelRequest) -> str:
        return self.otherwise(request)

    async def close(self) -> None:
        self.gate.set()
