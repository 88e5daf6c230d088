"""Tool calls in the model library's form and in ours, both ways.

Coming in they are handed on as they were written. Going out they are mended: broken arguments become `{}`, and ids of
another provider's calls are respelt.
"""

from __future__ import annotations

import hashlib
import json
import re

from pydantic_ai.messages import ModelResponsePart, ToolCallPart
from pydantic_core import from_json

from gateway.domain.message import ToolCall
from gateway.domain.text import whole
from gateway.ports.model import Style, ToolCallRequested

_LEGAL_IDS = {Style.ANTHROPIC: re.compile(r"[a-zA-Z0-9_-]{1,64}"), Style.OPENAI: re.compile(r"[\x21-\x7e]{1,40}")}


def call_of(part: ModelResponsePart) -> ToolCallRequested | None:
    """Return a finished part as a call, with the arguments as the model wrote them, or None."""
    if not isinstance(part, ToolCallPart):
        return None
    arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {}, ensure_ascii=False)
    return ToolCallRequested(part.tool_call_id, part.tool_name, whole(arguments) or "{}")


def call_part(call: ToolCall, style: Style) -> ToolCallPart:
    """Return a stored call as this style takes it."""
    return ToolCallPart(
        tool_name=call.name,
        args=call.arguments if is_object(call.arguments) else "{}",
        tool_call_id=legal_id(call.id, style),
    )


def legal_id(id: str, style: Style) -> str:
    """Return the id of a call as this style can spell it: the same for the call and its result, and the same always."""
    if _LEGAL_IDS[style].fullmatch(id):
        return id
    return f"call_{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


def is_object(arguments: str) -> bool:
    """Whether the text is a JSON object that can be sent, the only form of arguments that providers take."""
    try:
        parsed = from_json(arguments, allow_inf_nan=False)
        # A number too large for its type is read as infinite, and cannot be written again.
        json.dumps(parsed, allow_nan=False)
    except ValueError:
        return False
    return isinstance(parsed, dict)
