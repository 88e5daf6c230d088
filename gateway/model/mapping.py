"""Stored rows to the model library's messages, and back. The golden files hold both directions and the wire.

Thinking goes back only to the provider it came from: as `reasoning_content` where the OpenAI style is spoken, as a
signed block at Anthropic. Everything else about a row that a provider might refuse is mended here: broken arguments
become `{}`, ids of another provider's calls are respelt, empty texts and pictures without bytes are left out, half
characters are replaced.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_core import from_json

from gateway.domain.message import Message, Role, ToolCall, text_of
from gateway.model.surrogates import whole
from gateway.ports.model import Style, Thinking, ToolCallRequested

REASONING = "reasoning_content"
REDACTED = "redacted_thinking"
REDACTED_PREFIX = f"{REDACTED}:"
"""Begins the signature of thinking that the provider keeps hidden: the port has no other place for it."""
UNSEEN = "(a picture that cannot be shown here)"
NOTHING = "(empty)"
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.+)", re.IGNORECASE | re.DOTALL)
_LEGAL_IDS = {Style.ANTHROPIC: re.compile(r"[a-zA-Z0-9_-]{1,64}"), Style.OPENAI: re.compile(r"[\x21-\x7e]{1,40}")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom the history is for."""

    provider: str
    style: Style
    vision: bool = False


def to_history(rows: Sequence[Message], target: Target, *, system: str = "") -> list[ModelMessage]:
    """Return the rows as the library's messages, the system prompt first.

    Neighbouring rows of one side become one message, as Anthropic wants it.
    """
    system = "\n\n".join(
        text for text in [system, *(row.text for row in rows if row.role is Role.SYSTEM)] if text.strip()
    )
    names = {call.id: call.name for row in rows for call in row.tool_calls}
    spoken = [row for row in rows if row.role is not Role.SYSTEM]
    history: list[ModelMessage] = []
    for is_answer, group in groupby(spoken, key=lambda row: row.role is Role.ASSISTANT):
        if is_answer:
            if parts := _answer_parts(list(group), target):
                history.append(ModelResponse(parts=parts, provider_name=target.provider))
        else:
            history.append(ModelRequest(parts=[_request_part(row, names, target) for row in group]))
    return _with_system(history, system)


def to_rows(history: Sequence[ModelMessage], provider: str) -> list[Message]:
    """Return the library's messages as rows; `provider` is who gave the answers among them."""
    return [
        row
        for message in history
        for row in ([row_of(message, provider)] if isinstance(message, ModelResponse) else _request_rows(message))
    ]


def row_of(response: ModelResponse, provider: str) -> Message:
    """Return an answer as a row."""
    thoughts = [thought for part in response.parts if (thought := thinking_of(part, provider))]
    calls = [call for part in response.parts if (call := call_of(part))]
    return Message(
        role=Role.ASSISTANT,
        content="".join(part.content for part in response.parts if isinstance(part, TextPart)) or None,
        tool_calls=tuple(ToolCall(id=call.id, name=call.name, arguments=call.arguments) for call in calls),
        reasoning_content="\n\n".join(thought.text for thought in thoughts if not thought.signature) or None,
        thinking_blocks=tuple(_block(thought) for thought in thoughts if thought.signature),
        provider=provider,
    )


def thinking_of(part: ModelResponsePart, provider: str) -> Thinking | None:
    """Return a finished part as thinking, or None if it is something else or empty."""
    if not isinstance(part, ThinkingPart) or not (part.content or part.signature):
        return None
    if part.id == REDACTED:
        return Thinking("", provider, f"{REDACTED_PREFIX}{part.signature}")
    return Thinking(whole(part.content), provider, part.signature or None)


def call_of(part: ModelResponsePart) -> ToolCallRequested | None:
    """Return a finished part as a call, with the arguments as the model wrote them, or None."""
    if not isinstance(part, ToolCallPart):
        return None
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    return ToolCallRequested(part.tool_call_id, part.tool_name, whole(arguments) or "{}")


def is_object(arguments: str) -> bool:
    """Whether the text is a JSON object that can be sent, the only form of arguments that providers take."""
    try:
        parsed = from_json(arguments, allow_inf_nan=False)
        # A number too large for its type is read as infinite, and cannot be written again.
        json.dumps(parsed, allow_nan=False)
    except ValueError:
        return False
    return isinstance(parsed, dict)


def replays_thinking(history: Sequence[ModelMessage]) -> bool:
    """Whether thinking is among what is sent."""
    return any(isinstance(part, ThinkingPart) for message in history for part in message.parts)


def _with_system(history: list[ModelMessage], system: str) -> list[ModelMessage]:
    if not system:
        return history
    prompt = SystemPromptPart(content=whole(system))
    if history and isinstance(first := history[0], ModelRequest):
        return [replace(first, parts=[prompt, *first.parts]), *history[1:]]
    return [ModelRequest(parts=[prompt]), *history]


def _request_part(row: Message, names: Mapping[str, str], target: Target) -> UserPromptPart | ToolReturnPart:
    if row.role is Role.TOOL:
        id = row.tool_call_id or ""
        return ToolReturnPart(
            tool_name=row.name or names.get(id, "tool"),
            content=whole(row.text) if row.text.strip() else NOTHING,
            tool_call_id=_legal_id(id, target.style),
        )
    pieces = list(_user_content(row, target))
    if all(isinstance(piece, str) for piece in pieces):
        return UserPromptPart(content="\n".join(str(piece) for piece in pieces) or NOTHING)
    return UserPromptPart(content=pieces)


def _user_content(row: Message, target: Target) -> Iterator[UserContent]:
    if row.content is None or isinstance(row.content, str):
        yield whole(row.text) if row.text.strip() else NOTHING
        return
    unseen = 0
    for block in row.content:
        if block.get("type") == "text":
            if (text := text_of([block])).strip():
                yield whole(text)
        elif (picture := _picture(block)) and target.vision:
            yield picture
        else:
            unseen += 1
    if unseen and not row.text.strip():
        yield UNSEEN


def _picture(block: Mapping[str, Any]) -> BinaryContent | None:
    """Return a picture whose bytes are in the block: as a data URL, or as Anthropic writes them."""
    image_url, source = block.get("image_url"), block.get("source")
    if isinstance(image_url, Mapping) and (match := _DATA_URL.fullmatch(str(image_url.get("url")))):
        mime, data = match[1].lower(), match[2]
    elif isinstance(source, Mapping) and source.get("type") == "base64":
        mime, data = str(source.get("media_type")), str(source.get("data"))
    else:
        return None
    try:
        return BinaryContent(data=base64.b64decode(data, validate=True), media_type=mime)
    except binascii.Error:
        return None


def _answer_parts(rows: Sequence[Message], target: Target) -> list[ModelResponsePart]:
    parts: list[ModelResponsePart] = []
    for row in rows:
        text, calls = whole(row.text) if row.text.strip() else "", [_call_part(call, target) for call in row.tool_calls]
        # Thinking without words is refused, and so is thinking after words: both happen only when rows were lost.
        if not parts and (text or calls):
            parts += _thinking_parts(row, target)
        if text and parts and isinstance(last := parts[-1], TextPart):
            parts[-1] = TextPart(content=f"{last.content}\n\n{text}")
        elif text:
            parts.append(TextPart(content=text))
        parts += calls
    return parts


def _call_part(call: ToolCall, target: Target) -> ToolCallPart:
    return ToolCallPart(
        tool_name=call.name,
        args=call.arguments if is_object(call.arguments) else "{}",
        tool_call_id=_legal_id(call.id, target.style),
    )


def _legal_id(id: str, style: Style) -> str:
    """Return the id of a call as this style can spell it: the same for the call and its result, and the same always."""
    if _LEGAL_IDS[style].fullmatch(id):
        return id
    return f"call_{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def _thinking_parts(row: Message, target: Target) -> Iterator[ThinkingPart]:
    blocks = [block for block in row.thinking_blocks if block.get("provider", row.provider) == target.provider]
    if target.style is Style.ANTHROPIC:
        yield from (part for block in blocks if (part := _signed(block, target.provider)))
        return
    text = row.reasoning_content if row.provider == target.provider else None
    text = text or "\n\n".join(said for block in blocks if isinstance(said := block.get("thinking"), str) and said)
    if text:
        # The id is the name of the field in which the library sends it back.
        yield ThinkingPart(content=whole(text), id=REASONING, provider_name=target.provider)


def _signed(block: Mapping[str, Any], provider: str) -> ThinkingPart | None:
    signature, hidden = block.get("signature"), block.get("data")
    if isinstance(signature, str) and signature.startswith(REDACTED_PREFIX):
        hidden = signature.removeprefix(REDACTED_PREFIX)
    if isinstance(hidden, str) and hidden:
        return ThinkingPart(content="", id=REDACTED, signature=hidden, provider_name=provider)
    if isinstance(signature, str) and signature:
        return ThinkingPart(
            content=whole(str(block.get("thinking") or "")), signature=signature, provider_name=provider
        )
    return None


def _block(thought: Thinking) -> dict[str, Any]:
    return {
        "type": "thinking",
        "thinking": thought.text,
        "signature": thought.signature,
        "provider": thought.provider,
    }


def _request_rows(request: ModelRequest) -> Iterator[Message]:
    for part in request.parts:
        if isinstance(part, SystemPromptPart):
            yield Message(role=Role.SYSTEM, content=part.content)
        elif isinstance(part, ToolReturnPart):
            yield Message(
                role=Role.TOOL,
                content=part.model_response_str(),
                tool_call_id=part.tool_call_id,
                name=part.tool_name,
            )
        elif isinstance(part, UserPromptPart):
            content = (
                part.content if isinstance(part.content, str) else [_content_block(piece) for piece in part.content]
            )
            yield Message(role=Role.USER, content=content)


def _content_block(piece: UserContent) -> dict[str, Any]:
    if isinstance(piece, BinaryContent):
        return {"type": "image_url", "image_url": {"url": piece.data_uri}}
    return {"type": "text", "text": str(piece)}
