"""One provider behind the `Model` port, through the model layer of pydantic-ai: we hold the history, it the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelMessage, ModelResponseStreamEvent
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.tools import ToolDefinition

from gateway.model import failures, windows
from gateway.model.answers import text_of_answer
from gateway.model.clients import Client
from gateway.model.events import Joiner, closing_events, event_of
from gateway.model.history import Target, to_history, with_tail
from gateway.model.options import ModelOptions
from gateway.model.thinking import replays_thinking, with_thinking
from gateway.ports.model import Model, ModelEvent, ModelInfo, ModelRequest, TextDelta
from gateway.ports.tools import ToolSpec


class Adapter(Model):
    """Serves every model of one provider over one client."""

    def __init__(self, client: Client, options: ModelOptions) -> None:
        self._client = client
        self._options = options

    def info(self, model: str) -> ModelInfo:
        """Return what the table of known models says."""
        return windows.info(model, self._options)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; tool calls follow at the end, once it is known that they are whole.

        An answer that a filter or a refusal ends raises `Filtered` in place of the finish, after what was said and what
        it cost.
        """
        info = self.info(request.model)
        target = Target(provider=info.provider, style=info.style, vision=info.vision)
        history = with_tail(to_history(request.messages, target, system=request.system), request.tail, target)
        label = f"{info.provider}:{info.name}"
        with failures.translated(label, sent_thinking=replays_thinking(history)):
            async with AsyncExitStack() as stack:
                response = await self._opened(stack, request, info, history)
                events, joiner = aiter(response), Joiner()
                while (event := await self._next(events)) is not None:
                    if (mapped := event_of(event, info.provider, joiner)) is not None:
                        yield mapped
                if rest := joiner.end():
                    yield TextDelta(rest)
                for closing in closing_events(response.get(), info, label):
                    yield closing

    async def complete(self, request: ModelRequest) -> str:
        """Return the text of the answer; raises what `stream` raises, `Filtered` too."""
        return await text_of_answer(self.stream(request))

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._client.close()

    async def _opened(
        self, stack: AsyncExitStack, request: ModelRequest, info: ModelInfo, history: Sequence[ModelMessage]
    ) -> StreamedResponse:
        limit = request.max_output or self._options.max_output
        if limit is not None:
            # Whoever asked may have had another model in mind: a request can end at the fallback.
            limit = min(limit, info.max_output)
        opening = model_request_stream(
            self._client.model(info.name),
            history,
            model_settings=with_thinking(self._client.settings(limit, info.max_output), self._options.thinking),
            model_request_parameters=ModelRequestParameters(
                function_tools=[_definition(tool) for tool in request.tools]
            ),
        )
        # The client bounds each attempt by itself, but not by what keeps a connection warm without an answer.
        async with asyncio.timeout(self._options.timeout_seconds * (self._options.retries + 1)):
            return await stack.enter_async_context(opening)

    async def _next(self, events: AsyncIterator[ModelResponseStreamEvent]) -> ModelResponseStreamEvent | None:
        async with asyncio.timeout(self._options.timeout_seconds):
            return await anext(events, None)


def _definition(tool: ToolSpec) -> ToolDefinition:
    return ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.schema))
