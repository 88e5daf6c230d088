"""Stored rows as the model library's messages. The golden files hold what becomes of them, up to the wire.

What a provider might refuse about a row is mended on the way: empty texts and pictures without bytes are left out, half
characters are replaced, and thinking and calls go as their own modules say.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from gateway.domain.message import Message, Role, text_of
from gateway.domain.text import whole
from gateway.model.calls import call_part, legal_id
from gateway.model.thinking import thinking_parts
from gateway.ports.model import Style, Tail

UNSEEN = "(a picture that cannot be shown here)"
NOTHING = "(empty)"
_DATA_URL = re.compile(r"data:(image/[a-z0-9.+-]+);base64,(.+)", re.IGNORECASE | re.DOTALL)


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


def with_tail(history: list[ModelMessage], tail: Tail, target: Target) -> list[ModelMessage]:
    """Return the history with the tail at its end, behind a mark up to which it may be cached.

    It is part of the last message of the person's side, so that roles go on taking turns.
    """
    text = "\n".join([tail.text, UNSEEN]) if tail.pictures and not target.vision else tail.text
    pictures = [BinaryContent(data=one.data, media_type=one.mime) for one in tail.pictures] if target.vision else []
    if not text.strip() and not pictures:
        return history
    added: list[UserContent] = [*([whole(text)] if text.strip() else []), *pictures]
    last = history[-1] if history else None
    if not isinstance(last, ModelRequest):
        return [*history, ModelRequest(parts=[_prompt(added)])]
    *before, end = last.parts
    # Only where the mark means something is the text kept apart for it: others have one string.
    marked = [CachePoint(), *added] if target.style is Style.ANTHROPIC else added
    if not isinstance(end, UserPromptPart):
        return [*history[:-1], replace(last, parts=[*last.parts, _prompt(marked)])]
    stored: list[UserContent] = [end.content] if isinstance(end.content, str) else list(end.content)
    return [*history[:-1], replace(last, parts=[*before, _prompt([*stored, *marked])])]


def _prompt(content: Sequence[UserContent]) -> UserPromptPart:
    if all(isinstance(piece, str) for piece in content):
        return UserPromptPart(content="\n\n".join(str(piece) for piece in content))
    return UserPromptPart(content=list(content))


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
            tool_call_id=legal_id(id, target.style),
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
        text = whole(row.text) if row.text.strip() else ""
        calls = [call_part(call, target.style) for call in row.tool_calls]
        # Thinking without words is refused, and so is thinking after words: both happen only when rows were lost.
        if not parts and (text or calls):
            parts += thinking_parts(row, target.provider, target.style)
        if text and parts and isinstance(last := parts[-1], TextPart):
            parts[-1] = TextPart(content=f"{last.content}\n\n{text}")
        elif text:
            parts.append(TextPart(content=text))
        parts += calls
    return parts
