"""One provider behind the `Model` port, through the model layer of pydantic-ai: we hold the history, it the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.tools import ToolDefinition

from gateway.domain.errors import Unavailable
from gateway.domain.turn import Usage
from gateway.model import failures, windows
from gateway.model.answers import text_of_answer
from gateway.model.clients import Client
from gateway.model.mapping import Target, call_of, is_object, replays_thinking, thinking_of, to_history
from gateway.model.options import ModelOptions
from gateway.model.surrogates import Joiner
from gateway.ports.model import (
    Finish,
    FinishReason,
    Model,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from gateway.ports.tools import ToolSpec

REASONS = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.FILTER,
    "tool_call": FinishReason.STOP,
}
BROKEN_OFF = (FinishReason.LENGTH, FinishReason.FILTER)


class Adapter(Model):
    """Serves every model of one provider over one client."""

    def __init__(self, client: Client, options: ModelOptions) -> None:
        self._client = client
        self._options = options

    def info(self, model: str) -> ModelInfo:
        """Return what the table of known models says."""
        return windows.info(model, self._options)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; tool calls follow at the end, once it is known that they are whole."""
        info = self.info(request.model)
        target = Target(provider=info.provider, style=info.style, vision=info.vision)
        history = to_history(request.messages, target, system=request.system)
        label = f"{info.provider}:{info.name}"
        with failures.translated(label, sent_thinking=replays_thinking(history)):
            async with AsyncExitStack() as stack:
                response = await self._opened(stack, request, info, history)
                events, joiner = aiter(response), Joiner()
                while (event := await self._next(events)) is not None:
                    if (mapped := _mapped(event, info.provider, joiner)) is not None:
                        yield mapped
                if rest := joiner.end():
                    yield TextDelta(rest)
                for closing in _closing(response.get(), info, label):
                    yield closing

    async def complete(self, request: ModelRequest) -> str:
        """Return the text of the answer."""
        return await text_of_answer(self.stream(request))

    async def close(self) -> None:
        """Close the provider's connections."""
        await self._client.close()

    async def _opened(
        self, stack: AsyncExitStack, request: ModelRequest, info: ModelInfo, history: Sequence[ModelMessage]
    ) -> StreamedResponse:
        limit = request.max_output or self._options.max_output
        opening = model_request_stream(
            self._client.model(info.name),
            history,
            model_settings=self._client.settings(limit, info.max_output),
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


def _mapped(event: ModelResponseStreamEvent, provider: str, joiner: Joiner) -> ModelEvent | None:
    text = ""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        text = joiner.add(event.part.content)
    elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        text = joiner.add(event.delta.content_delta)
    elif isinstance(event, PartEndEvent):
        return thinking_of(event.part, provider)
    return TextDelta(text) if text else None


def _closing(response: ModelResponse, info: ModelInfo, label: str) -> Iterator[ModelEvent]:
    reason = _reason(response, label)
    calls = [call for part in response.parts if (call := call_of(part)) and _is_whole(call, reason)]
    yield from calls
    usage = response.usage
    yield UsageReported(
        Usage(
            provider=info.provider,
            model=info.name,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            written_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
        )
    )
    yield Finish(FinishReason.TOOLS if calls and reason is FinishReason.STOP else reason)


def _reason(response: ModelResponse, label: str) -> FinishReason:
    if response.finish_reason in REASONS:
        return REASONS[response.finish_reason]
    raw = (response.provider_details or {}).get("finish_reason")
    if raw is None or response.finish_reason == "error":
        raise Unavailable(f"the answer of {label} broke off")
    return FinishReason.STOP


def _is_whole(call: ToolCallRequested, reason: FinishReason) -> bool:
    """Whether the call may be run: one that was cut off in its arguments is not what the model wanted."""
    return reason not in BROKEN_OFF or is_object(call.arguments)
