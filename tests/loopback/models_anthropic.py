"""Anthropic's messages as the loopback server speaks them: a strict judge of histories, errors, answers.

Thinking is signed with a secret, and comes back only with the signature the server itself would give it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

from tests.loopback.models_answers import Answer, Asked, Fault, Problem

SECRET = b"loopback"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
FINISH = {"stop": "end_turn", "length": "max_tokens", "filter": "refusal"}
STATUSES: dict[Fault, tuple[int, str, str]] = {
    Fault.UNAUTHORIZED: (401, "authentication_error", "invalid x-api-key"),
    Fault.RATE_LIMITED: (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    Fault.QUOTA: (402, "billing_error", "Your credit balance is too low to access the Anthropic API."),
    Fault.SERVER_ERROR: (500, "api_error", "Internal server error"),
    Fault.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Fault.OVERFLOW: (400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"),
    Fault.NO_MODEL: (404, "not_found_error", "model: no-such-model"),
    Fault.FILTER_REFUSED: (400, "invalid_request_error", "Output blocked by content filtering policy"),
    Fault.THINKING_REFUSED: (
        400,
        "invalid_request_error",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    Fault.REFUSED: (400, "invalid_request_error", "top_p: Extra inputs are not permitted"),
}


def sign(thinking: str) -> str:
    """Return the signature that this server gives a text of thinking."""
    return "sig_" + hmac.new(SECRET, thinking.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def judge(asked: Asked) -> Problem | None:
    """Return what is illegal about the request, or None."""
    if not isinstance(asked.body.get("max_tokens"), int):
        return Problem("max_tokens: Field required")
    if asked.body.get("system") is not None and not asked.system.strip():
        return Problem("system: text content blocks must be non-empty")
    if not asked.messages:
        return Problem("messages: at least one message is required")
    checks = (_roles, _contents, _pairs)
    return next((problem for check in checks for problem in check(asked.messages)), None)


def _roles(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    roles = [message["role"] for message in messages]
    for index, role in enumerate(roles):
        if role not in ("user", "assistant"):
            yield Problem(f"messages.{index}.role: Input should be 'user' or 'assistant'")
    if roles[0] != "user":
        yield Problem('messages: first message must use the "user" role')
    for before, after in pairwise(roles):
        if before == after:
            said = f'but found multiple "{after}" roles in a row'
            yield Problem(f'messages: roles must alternate between "user" and "assistant", {said}')
    if roles[-1] != "user":
        yield Problem("messages: the conversation must end with a user message.")


def _contents(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        if not blocks:
            yield Problem(f"messages.{index}: all messages must have non-empty content")
        for place, block in enumerate(blocks):
            said = _block(block, message["role"])
            if said:
                yield Problem(f"messages.{index}.content.{place}: {said}")
        kinds = [block["type"] for block in blocks]
        if any(kind.endswith("thinking") for kind in kinds) and not kinds[0].endswith("thinking"):
            yield Problem(f"messages.{index}.content.0.type: Expected `thinking`, but found `{kinds[0]}`.")


def _block(block: dict[str, Any], role: str) -> str | None:
    match block["type"]:
        case "text" if not block["text"].strip():
            return "text content blocks must contain non-whitespace text"
        case "thinking" if role != "assistant" or block.get("signature") != sign(block["thinking"]):
            return "Invalid `signature` in `thinking` block"
        case "redacted_thinking" if role != "assistant" or block.get("data") != sign("redacted"):
            return "Invalid `data` in `redacted_thinking` block"
        case "tool_use" if role != "assistant" or not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
            return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        case "tool_use" if not isinstance(block.get("input"), dict):
            return "tool_use.input: Input should be a valid dictionary"
        case "tool_result" if role != "user":
            return "`tool_result` blocks can only be in `user` messages"
        case "tool_result" if any(not text.strip() for text in _result_texts(block)):
            return "tool_result: text content blocks must be non-empty"
        case "text" | "thinking" | "redacted_thinking" | "tool_use" | "tool_result" | "image":
            return None
        case other:
            return f"Input tag {other!r} found using 'type' does not match any of the expected tags"
    return None


def _result_texts(block: dict[str, Any]) -> list[str]:
    content = block.get("content", [])
    return [content] if isinstance(content, str) else [inner["text"] for inner in content if inner["type"] == "text"]


def _pairs(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        blocks = blocks_of(message)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        for result in results:
            if result not in waiting:
                yield Problem(
                    f"messages.{index}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {result}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        if len(set(results)) != len(results):
            yield Problem(f"messages.{index}: each tool_use must have a single result.")
        if missing := [call for call in waiting if call not in results]:
            yield Problem(
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        kinds = [block["type"] for block in blocks]
        if "tool_result" in kinds[len(results) :]:
            yield Problem(f"messages.{index}: `tool_result` blocks must come first in the content")
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if len(set(waiting)) != len(waiting) or seen & set(waiting):
            yield Problem(f"messages.{index}: `tool_use` ids must be unique")
        seen |= set(waiting)


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message's content as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def refusal(problem: Problem) -> tuple[int, dict[str, Any]]:
    """Return the status and body with which an illegal history is refused."""
    return 400, _error("invalid_request_error", problem.message)


def failure(fault: Fault) -> tuple[int, dict[str, Any]]:
    """Return the status and body of a fault that has one."""
    status, kind, message = STATUSES[fault]
    return status, _error(kind, message)


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_loopback"}


async def stream(asked: Asked, answer: Answer) -> AsyncIterator[bytes]:
    """Yield the events of a streamed answer; each delta of the text is one item."""
    message = {"id": "msg_loopback", "type": "message", "role": "assistant", "model": asked.model, "content": []}
    start = {
        **message,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**_usage(asked, answer), "output_tokens": 1},
    }
    yield _event("message_start", message=start)
    yield _event("ping")
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    reason = "tool_use" if answer.calls and answer.finish == "stop" else FINISH.get(answer.finish, answer.finish)
    usage = {"output_tokens": _usage(asked, answer)["output_tokens"]}
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.thinking:
        words = re.findall(r"\s*\S+\s*", answer.thinking)
        deltas = [{"type": "thinking_delta", "thinking": word} for word in words]
        signed = {"type": "signature_delta", "signature": sign(answer.thinking)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*deltas, signed]
    if answer.redacted:
        yield {"type": "redacted_thinking", "data": sign("redacted")}, []
    if answer.deltas:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.deltas]
    for place, call in enumerate(answer.calls):
        raw = call.raw
        pieces = [raw[: len(raw) // 2], raw[len(raw) // 2 :]]
        block = {"type": "tool_use", "id": call.id or f"toolu_{call.name}_{place}", "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def is_text(item: bytes) -> bool:
    """Whether an event of a stream brings words of the answer."""
    return b'"text_delta"' in item


def error_line() -> bytes:
    """Return an error inside a stream."""
    kind, message = STATUSES[Fault.OVERLOADED][1:]
    return _event("error", error={"type": kind, "message": message})


def _event(kind: str, **payload: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **payload})}\n\n".encode()


def _usage(asked: Asked, answer: Answer) -> dict[str, int]:
    prompt = asked.size // 4 if answer.input_tokens is None else answer.input_tokens
    said = len(answer.text or "") + len(answer.thinking) + sum(len(call.raw) for call in answer.calls)
    # Anthropic counts cached tokens beside the input, not in it.
    return {
        "input_tokens": max(0, prompt - answer.cached_tokens - answer.written_tokens),
        "cache_read_input_tokens": answer.cached_tokens,
        "cache_creation_input_tokens": answer.written_tokens,
        "output_tokens": said // 4 + 1 if answer.output_tokens is None else answer.output_tokens,
    }
