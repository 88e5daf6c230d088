"""The one model the gateway uses: it sends each request to the provider in its model id.

The providers' libraries are imported at the first turn that needs them, in a thread, since that takes seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger

from gateway.domain.errors import TrunklineError, Unavailable
from gateway.model import providers, windows
from gateway.model.answers import text_of_answer
from gateway.model.echo import Echo
from gateway.model.options import BUILT_IN, ModelOptions
from gateway.model.scripted import Scripted
from gateway.ports.model import Model, ModelEvent, ModelInfo, ModelRequest
from gateway.ports.tokens import TokenCounter

if TYPE_CHECKING:
    from gateway.model.adapter import Adapter


class Models(Model):
    """Every model there is, by its id.

    If a model is unavailable before it has said anything, the fallback of the settings answers in its place; the
    usage it reports says so.
    """

    def __init__(self, options: ModelOptions, environment: Mapping[str, str], *, count: TokenCounter) -> None:
        self._options = options
        self._environment = environment
        self._echo = Echo(options, count)
        self._scripts: dict[str, Scripted] = {}
        self._adapters: dict[str, Adapter] = {}
        self._replaced: set[str] = set()

    def info(self, model: str) -> ModelInfo:
        """Return what is known of the model; raise `Refused` if nobody serves the id."""
        return windows.info(model, self._options)

    def check(self, model: str) -> None:
        """Raise `Refused` if nobody serves the id, and `AuthFailed` if its key is missing. Nothing is sent."""
        provider, _ = providers.split_id(model, self._options)
        if provider not in BUILT_IN:
            providers.endpoint(provider, self._options, self._environment)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the events of the model asked for, or of the fallback, and raise what either raises.

        A history made for a larger window than the fallback's ends in the fallback's own `ContextOverflow`: whoever
        shortens the history and asks again is answered.
        """
        async with AsyncExitStack() as stack:
            try:
                events = await stack.enter_async_context(aclosing(await self._events(request)))
                first = await anext(events)
            except (Unavailable, providers.OutOfCredit) as error:
                events = await stack.enter_async_context(aclosing(await self._fallback(request, error)))
                first = await anext(events)
            else:
                self._is_back(request.model)
            yield first
            async for event in events:
                yield event

    async def complete(self, request: ModelRequest) -> str:
        """Return the text of the answer."""
        return await text_of_answer(self.stream(request))

    async def close(self) -> None:
        """Close the connections of all providers."""
        async with AsyncExitStack() as stack:
            for adapter in self._adapters.values():
                stack.push_async_callback(adapter.close)
            self._adapters = {}

    async def _events(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        provider, name = providers.split_id(request.model, self._options)
        if provider == "echo":
            return self._echo.stream(request)
        if provider == "scripted":
            return (await self._script(name)).stream(request)
        return (await self._adapter(provider)).stream(request)

    async def _script(self, path: str) -> Scripted:
        if path not in self._scripts:
            script = await Scripted.read(self._options, Path(path))
            self._scripts.setdefault(path, script)
        return self._scripts[path]

    async def _adapter(self, provider: str) -> Adapter:
        if provider not in self._adapters:
            endpoint = providers.endpoint(provider, self._options, self._environment)
            adapter = await asyncio.to_thread(_open, endpoint, self._options)
            if provider in self._adapters:
                await adapter.close()
            self._adapters.setdefault(provider, adapter)
        return self._adapters[provider]

    async def _fallback(self, request: ModelRequest, error: TrunklineError) -> AsyncGenerator[ModelEvent, None]:
        fallback = self._options.fallback
        if fallback is None or fallback == request.model:
            raise error
        if request.model not in self._replaced:
            self._replaced.add(request.model)
            logger.bind(model=request.model, fallback=fallback, error=str(error)).warning(
                "model replaced by the fallback"
            )
        return await self._events(replace(request, model=fallback))

    def _is_back(self, model: str) -> None:
        if model in self._replaced:
            self._replaced.discard(model)
            logger.bind(model=model).info("model answers again")


def _open(endpoint: providers.Endpoint, options: ModelOptions) -> Adapter:
    from gateway.model.adapter import Adapter
    from gateway.model.clients import open_client

    return Adapter(open_client(endpoint, options), options)
