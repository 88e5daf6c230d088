"""OpenAI's chat completions as the loopback server speaks them: a strict judge of histories, errors, answers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from typing import Any

from tests.loopback.models_answers import Answer, Asked, Fault, Problem, text_of

ROLES = ("system", "developer", "user", "assistant", "tool")
PING = b": still here\n\n"
SYSTEM = ("system", "developer")
FINISH = {"stop": "stop", "length": "length", "filter": "content_filter", "refusal": "stop"}
REFUSAL = "I cannot help with that."
BAD = "invalid_request_error"
TOO_LONG = (
    "This model's maximum context length is 10 tokens. However, your messages resulted in 11 tokens. Please reduce the "
    "length of the messages."
)
STATUSES: dict[Fault, tuple[int, str, str | None, str]] = {
    Fault.UNAUTHORIZED: (401, BAD, "invalid_api_key", "Incorrect API key provided: sk-loop****."),
    Fault.RATE_LIMITED: (429, "requests", "rate_limit_exceeded", "Rate limit reached on requests per min."),
    Fault.QUOTA: (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    Fault.SERVER_ERROR: (500, "server_error", None, "The server had an error while processing your request."),
    Fault.OVERLOADED: (503, "server_error", "server_is_overloaded", "The engine is currently overloaded."),
    Fault.OVERFLOW: (400, BAD, "context_length_exceeded", TOO_LONG),
    Fault.NO_MODEL: (404, BAD, "model_not_found", "The model does not exist or you do not have access to it."),
    Fault.FILTER_REFUSED: (400, BAD, "content_policy_violation", "Your request was rejected by our safety system."),
    Fault.THINKING_REFUSED: (400, BAD, None, "The reasoning_content is an unsupported field of the assistant message."),
    Fault.REFUSED: (400, BAD, "unsupported_parameter", "Unsupported parameter: 'temperature'."),
}


def judge(asked: Asked, *, strict_roles: bool) -> Problem | None:
    """Return what is illegal about the history, or None."""
    messages = asked.messages
    if not messages:
        return Problem("Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages")
    checks = (_shapes, _calls, _order)
    found = next((problem for check in checks for problem in check(messages)), None)
    return found or (next(_alternation(messages), None) if strict_roles else None)


def _shapes(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    for index, message in enumerate(messages):
        role, content, at = message.get("role"), message.get("content"), f"messages.[{index}]"
        if role not in ROLES:
            yield Problem(f"Invalid value: {role!r}. Supported values are: {ROLES}.", f"{at}.role")
        if role == "assistant" and message.get("tool_calls") == []:
            yield Problem(f"Invalid '{at}.tool_calls': empty array.", f"{at}.tool_calls")
        if role == "assistant" and message.get("tool_calls") and content is None:
            continue
        if content is None:
            yield Problem("Invalid value for 'content': expected a string, got null.", f"{at}.content")
        elif not isinstance(content, str | list) or content == []:
            yield Problem(f"Invalid type for '{at}.content'.", f"{at}.content")
        elif role in ("assistant", "user") and not message.get("tool_calls") and not _says_something(content):
            yield Problem(f"Invalid '{at}.content': expected something to read, got blank text.", f"{at}.content")


def _says_something(content: Any) -> bool:
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return any(block.get("type") != "text" or block["text"].strip() for block in blocks)


def _calls(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    waiting: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                said = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
                yield Problem(f"Invalid parameter: {said}", f"messages.[{index}].role")
                return
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield _unanswered(waiting, index)
        for call in message.get("tool_calls") or []:
            yield from _call(call, seen, index)
            waiting.append(call["id"])
            seen.add(call["id"])
    if waiting:
        yield _unanswered(waiting, len(messages))


def _call(call: dict[str, Any], seen: set[str], index: int) -> Iterator[Problem]:
    at = f"messages.[{index}].tool_calls"
    if not isinstance(call.get("id"), str) or not 0 < len(call["id"]) <= 40:
        yield Problem(f"Invalid '{at}.id': expected a string of 1 to 40 characters.", at)
    if call["id"] in seen:
        yield Problem(f"Duplicate value for 'tool_call_id' of {call['id']} in message[{index}]", at)
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
        yield Problem(f"Invalid '{at}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", at)
    try:
        parsed = json.loads(call["function"]["arguments"])
    except (TypeError, ValueError):
        parsed = None
    if not isinstance(parsed, dict):
        yield Problem(f"Invalid '{at}.function.arguments': not a JSON object.", at)


def _unanswered(waiting: list[str], index: int) -> Problem:
    return Problem(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(waiting)}",
        f"messages.[{index}].role",
    )


def _order(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    first = next((index for index, message in enumerate(messages) if message["role"] not in SYSTEM), None)
    if first is None or messages[first]["role"] != "user":
        yield Problem("Invalid 'messages': the first message after the system prompt must be of the user.", "messages")


def _alternation(messages: list[dict[str, Any]]) -> Iterator[Problem]:
    roles = [message["role"] for message in messages]
    for before, after in pairwise(roles):
        if (before == after and after != "tool") or (after in SYSTEM):
            yield Problem(
                "After the optional system message, conversation roles must alternate user/assistant/user/...",
                "messages",
            )
    if roles[-1] == "assistant":
        yield Problem("Expected last role User or Tool for serving but got assistant", "messages")


def refusal(problem: Problem) -> tuple[int, dict[str, Any]]:
    """Return the status and body with which an illegal history is refused."""
    return 400, _error("invalid_request_error", problem.code, problem.message, problem.where)


def failure(fault: Fault) -> tuple[int, dict[str, Any]]:
    """Return the status and body of a fault that has one."""
    status, kind, code, message = STATUSES[fault]
    return status, _error(kind, code, message, None)


def _error(kind: str, code: str | None, message: str, where: str | None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": where, "code": code}}


def whole(asked: Asked, answer: Answer) -> dict[str, Any]:
    """Return the answer to a request that did not ask for a stream."""
    refusal = REFUSAL if answer.finish == "refusal" else None
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": refusal}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_tool_call(answer, index) for index in range(len(answer.calls))]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
    return {**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(asked, answer)}


async def stream(asked: Asked, answer: Answer) -> AsyncIterator[bytes]:
    """Yield the lines of a streamed answer; each delta of the text is one item."""
    yield _chunk(asked, {"role": "assistant", "content": None if answer.text is None else ""})
    for piece in re.findall(r"\s*\S+\s*", answer.thinking):
        yield _chunk(asked, {"reasoning_content": piece})
    for piece in answer.deltas:
        yield _chunk(asked, {"content": piece})
    for index in range(len(answer.calls)):
        call = _tool_call(answer, index)
        raw = call["function"]["arguments"]
        head = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield _chunk(asked, {"tool_calls": [head]})
        for part in (raw[: len(raw) // 2], raw[len(raw) // 2 :]):
            yield _chunk(asked, {"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    if answer.finish == "refusal":
        for piece in re.findall(r"\s*\S+\s*", REFUSAL):
            yield _chunk(asked, {"refusal": piece})
    yield _chunk(asked, {}, _finish(answer))
    if (asked.body.get("stream_options") or {}).get("include_usage"):
        yield _line({**_head(asked, "chat.completion.chunk"), "choices": [], "usage": _usage(asked, answer)})
    yield b"data: [DONE]\n\n"


def is_text(item: bytes) -> bool:
    """Whether a line of a stream brings words of the answer."""
    return b'"content": "' in item and b'"content": ""' not in item


def error_line() -> bytes:
    """Return an error inside a stream."""
    return _line(failure(Fault.SERVER_ERROR)[1])


def _head(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-loopback", "object": kind, "created": 1_750_000_000, "model": asked.model}


def _chunk(asked: Asked, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _line({**_head(asked, "chat.completion.chunk"), "choices": [choice]})


def _line(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def _tool_call(answer: Answer, index: int) -> dict[str, Any]:
    call = answer.calls[index]
    function = {"name": call.name, "arguments": call.raw}
    return {"id": call.id or f"call_{call.name}_{index}", "type": "function", "function": function}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls and answer.finish == "stop" else FINISH.get(answer.finish, answer.finish)


def _usage(asked: Asked, answer: Answer) -> dict[str, Any]:
    prompt = asked.size // 4 if answer.input_tokens is None else answer.input_tokens
    said = len(answer.text or "") + len(answer.thinking) + sum(len(call.raw) for call in answer.calls)
    completion = said // 4 + 1 if answer.output_tokens is None else answer.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens},
    }


def last_words(asked: Asked) -> str:
    """Return the text of the very last message, whoever spoke."""
    return text_of(asked.messages[-1]["content"])
