"""A loopback server that plays the model providers, and judges every history as strictly as the strictest of them.

    async with ModelServer() as models:
        models.openai_url            # base_url of an OpenAI-compatible provider, ends in /v1
        models.anthropic_url         # base_url of Anthropic
        models.answer = lambda asked: Answer(text="42", thinking="hm", calls=[Call(name="add", arguments={"a": 1})])
        models.fail_next(Fault.RATE_LIMITED, times=2)
        models.hold(); ...; await models.arrived(1); models.release()
        models.requests, models.refusals, models.in_flight, models.hung_up

It lives in the loop of the test; the gateway that talks to it may be another process.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import ModuleType
from typing import Any, Self

from aiohttp import web

from tests.loopback import models_anthropic, models_openai
from tests.loopback.models_answers import STATUS_FAULTS, Answer, Asked, Call, Fault, Problem

__all__ = ["Answer", "Asked", "Call", "Fault", "ModelServer", "answer_to"]

Answering = Callable[[Asked], Answer | str | Awaitable[Answer | str]]
WAIT_SECONDS = 30
PING_SECONDS = 0.05


def answer_to(asked: Asked) -> Answer:
    """Answer with the last words of the user: the default."""
    return Answer(text=f"answer to: {asked.last_user}")


class ModelServer:
    """The providers on one random port. `requests` are all bodies that came, `refusals` what was illegal in them.

    `strict_roles` asks OpenAI-style histories to alternate, as the templates of local servers do;
    `window_characters` bounds a history; `key` is the only API key taken, if given.
    """

    def __init__(
        self, *, strict_roles: bool = False, window_characters: int | None = None, key: str | None = None
    ) -> None:
        self.strict_roles = strict_roles
        self.window_characters = window_characters
        self.key = key
        self.answer: Answering = answer_to
        self.asked: list[Asked] = []
        self.refusals: list[str] = []
        self.in_flight = 0
        self.hung_up = 0
        """How many requests the client broke off."""
        self._faults: deque[Fault] = deque()
        self._gate = asyncio.Event()
        self._gate.set()
        self._hold_after = 0
        self._changed = asyncio.Condition()

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The parsed bodies of all requests for an answer, oldest first."""
        return [asked.body for asked in self.asked]

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI-compatible clients."""
        return f"{self.anthropic_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for Anthropic's client."""
        return f"http://127.0.0.1:{self._port}"

    def fail_next(self, fault: Fault, times: int = 1) -> None:
        """Let the next requests fail, each once, in the order in which faults were asked for."""
        self._faults.extend([fault] * times)

    def calm(self) -> None:
        """Forget the faults that no request has met yet."""
        self._faults.clear()

    def hold(self, after: int = 0) -> None:
        """Pause answers: before the first byte, or once `after` pieces of the text have gone out."""
        self._hold_after = after
        self._gate.clear()

    def release(self) -> None:
        """Let paused answers go on."""
        self._gate.set()

    async def arrived(self, count: int) -> None:
        """Return once `count` requests have come in all."""
        await self._until(lambda: len(self.asked) >= count)

    async def idle(self) -> None:
        """Return once no request is being answered."""
        await self._until(lambda: self.in_flight == 0)

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/messages", self._messages)
        app.router.add_get("/v1/models", self._models)
        # Cancelling the handler is how a test learns that the client broke off.
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.release()
        await self._runner.cleanup()

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._changed:
            await self._changed.wait_for(condition)

    async def _note(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _models(self, request: web.Request) -> web.StreamResponse:
        if not self._knows(request):
            return web.json_response(models_openai.failure(Fault.UNAUTHORIZED)[1], status=401)
        return web.json_response(
            {"object": "list", "data": [{"id": "loopback", "object": "model", "owned_by": "tests"}]}
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._counted(request, "openai", models_openai)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        return await self._counted(request, "anthropic", models_anthropic)

    async def _counted(self, request: web.Request, style: str, wire: ModuleType) -> web.StreamResponse:
        asked = Asked(style=style, body=await request.json(), headers=dict(request.headers))
        self.asked.append(asked)
        self.in_flight += 1
        await self._note()
        try:
            return await self._answered(request, asked, wire)
        except (asyncio.CancelledError, ConnectionResetError):
            self.hung_up += 1
            raise
        finally:
            self.in_flight -= 1
            await asyncio.shield(self._note())

    async def _answered(self, request: web.Request, asked: Asked, wire: ModuleType) -> web.StreamResponse:
        if not self._knows(request):
            return _failed(wire, Fault.UNAUTHORIZED)
        if problem := self._judged(asked):
            self.refusals.append(problem.message)
            status, body = wire.refusal(problem)
            return web.json_response(body, status=status)
        fault = self._faults.popleft() if self._faults else None
        if fault is None and self.window_characters is not None and asked.size > self.window_characters:
            fault = Fault.OVERFLOW
        if fault in STATUS_FAULTS:
            return _failed(wire, fault)
        if fault is Fault.SILENT:
            await asyncio.Event().wait()
        if fault is Fault.HUNG_UP:
            return _hang_up(request)
        if not self._hold_after:
            await self._gate.wait()
        answer = await self._said(asked)
        if not asked.body.get("stream"):
            return web.json_response(models_openai.whole(asked, answer))
        return await self._streamed(request, wire, wire.stream(asked, answer), fault)

    def _knows(self, request: web.Request) -> bool:
        given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        return self.key is None or given == self.key

    def _judged(self, asked: Asked) -> Problem | None:
        if asked.style == "anthropic":
            return models_anthropic.judge(asked)
        return models_openai.judge(asked, strict_roles=self.strict_roles)

    async def _said(self, asked: Asked) -> Answer:
        said = self.answer(asked)
        if inspect.isawaitable(said):
            said = await said
        return Answer(text=said) if isinstance(said, str) else said

    async def _streamed(
        self, request: web.Request, wire: ModuleType, items: AsyncIterator[bytes], fault: Fault | None
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        if fault is Fault.WAITING:
            await _ping(response, wire)
        pieces = 0
        async for item in items:
            await response.write(item)
            pieces += wire.is_text(item)
            if fault and pieces:
                return await _broken(request, response, wire, fault)
            if pieces == self._hold_after and wire.is_text(item):
                await self._gate.wait()
        return response


def _failed(wire: ModuleType, fault: Fault) -> web.StreamResponse:
    status, body = wire.failure(fault)
    # The SDKs obey this header, so a test of one failure does not sit through their waits.
    headers = {"retry-after": "7", "x-should-retry": "false"} if fault is Fault.RATE_LIMITED else {}
    return web.json_response(body, status=status, headers=headers)


async def _broken(
    request: web.Request, response: web.StreamResponse, wire: ModuleType, fault: Fault
) -> web.StreamResponse:
    if fault is Fault.STALLED:
        await asyncio.Event().wait()
    if fault is Fault.PINGING:
        await _ping(response, wire)
    if fault is Fault.DROPPED:
        return _hang_up(request, response)
    if fault is Fault.ERROR_IN_STREAM:
        await response.write(wire.error_line())
    if fault is Fault.GARBLED:
        await response.write(b"data: {not json\n\n")
    return response


async def _ping(response: web.StreamResponse, wire: ModuleType) -> None:
    while True:
        await response.write(wire.PING)
        await asyncio.sleep(PING_SECONDS)


def _hang_up(request: web.Request, response: web.StreamResponse | None = None) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return response or web.Response()
