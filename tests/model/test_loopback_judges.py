"""The loopback server refuses what the providers refuse: without that, no test of a legal history proves anything."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.loopback.models import Answer, Call, Fault, ModelServer
from tests.loopback.models_anthropic import sign

SYSTEM = {"role": "system", "content": "Be kind."}
USER = {"role": "user", "content": "Hello"}
SAID = {"role": "assistant", "content": "Hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "3"}
USE = {"type": "tool_use", "id": "c1", "name": "add", "input": {}}
USED = {"role": "assistant", "content": [USE]}
DONE = {"type": "tool_result", "tool_use_id": "c1", "content": "3"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": sign("hm")}
TEXT = {"type": "text", "text": "Hi"}


def call(**changes: Any) -> dict[str, Any]:
    return {**CALLED, "tool_calls": [{**CALL, **changes}]}


def function(**changes: Any) -> dict[str, Any]:
    return call(function={**CALL["function"], **changes})  # type: ignore[dict-item]


async def ask(server: ModelServer, path: str, messages: list[Any], **given: Any) -> tuple[int, dict[str, Any]]:
    body = {"model": "m", "messages": messages, "stream": True, **given}
    async with aiohttp.ClientSession() as session, session.post(server.anthropic_url + path, json=body) as response:
        if response.status == 200:
            await response.read()
            return 200, {}
        return response.status, await response.json()


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [SYSTEM, USER, SAID, USER],
        [USER, CALLED, RESULT],
        [USER, CALLED, RESULT, USER],
        [USER, {**CALLED, "content": "Let me."}, RESULT, SAID, USER],
        [USER, {**CALLED, "tool_calls": [CALL, {**CALL, "id": "c2"}]}, {**RESULT, "tool_call_id": "c2"}, RESULT],
        [USER, USER],
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    ],
)
async def test_a_legal_history_of_openai_is_answered(server: ModelServer, messages: list[Any]) -> None:
    assert await ask(server, "/v1/chat/completions", messages) == (200, {})
    assert server.refusals == []


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "empty array"),
        ([SAID], "must be of the user"),
        ([SYSTEM, SAID, USER], "must be of the user"),
        ([SYSTEM], "must be of the user"),
        ([USER, RESULT], "preceeding message with 'tool_calls'"),
        ([USER, CALLED, RESULT, RESULT], "preceeding message with 'tool_calls'"),
        ([USER, CALLED, {**RESULT, "tool_call_id": "other"}], "preceeding message with 'tool_calls'"),
        ([USER, CALLED], "did not have response messages: c1"),
        ([USER, CALLED, USER, RESULT], "did not have response messages: c1"),
        ([USER, CALLED, RESULT, CALLED, RESULT], "Duplicate value for 'tool_call_id'"),
        ([USER, {"role": "assistant", "content": None}], "got null"),
        ([USER, {"role": "assistant", "content": " "}, USER], "blank"),
        ([USER, {"role": "assistant", "content": ""}, USER], "blank"),
        ([{"role": "user", "content": None}], "got null"),
        ([{"role": "user", "content": []}], "Invalid type"),
        ([USER, function(arguments='{"a":'), RESULT], "not a JSON object"),
        ([USER, function(arguments="[]"), RESULT], "not a JSON object"),
        ([USER, function(name="a b"), RESULT], "does not match pattern"),
        ([USER, call(id=""), RESULT], "1 to 40 characters"),
        ([USER, {**SAID, "tool_calls": []}, USER], "empty array"),
        ([{"role": "robot", "content": "Hi"}], "Supported values"),
    ],
)
async def test_an_illegal_history_of_openai_is_refused(server: ModelServer, messages: list[Any], says: str) -> None:
    status, body = await ask(server, "/v1/chat/completions", messages)
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert says in body["error"]["message"]
    assert server.refusals == [body["error"]["message"]]


@pytest.mark.parametrize("messages", [[USER, USER], [USER, SAID, SAID, USER], [USER, SAID], [USER, SYSTEM, USER]])
async def test_a_template_of_strict_roles_refuses_more(messages: list[Any]) -> None:
    async with ModelServer(strict_roles=True) as server:
        assert (await ask(server, "/v1/chat/completions", messages))[0] == 400
        assert await ask(server, "/v1/chat/completions", [USER, CALLED, RESULT, SAID, USER]) == (200, {})


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, SAID, USER],
        [USER, USED, {"role": "user", "content": [DONE]}],
        [USER, {"role": "assistant", "content": [THOUGHT, TEXT, USE]}, {"role": "user", "content": [DONE, TEXT]}],
        [USER, {"role": "assistant", "content": [THOUGHT, TEXT]}, USER],
    ],
)
async def test_a_legal_history_of_anthropic_is_answered(server: ModelServer, messages: list[Any]) -> None:
    assert await ask(server, "/v1/messages", messages, max_tokens=10) == (200, {})
    assert server.refusals == []


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def person(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "at least one message"),
        ([SAID, USER], 'first message must use the "user" role'),
        ([USER, USER], "roles must alternate"),
        ([USER, SAID, SAID, USER], "roles must alternate"),
        ([USER, SAID], "must end with a user message"),
        ([SYSTEM, USER], "Input should be 'user' or 'assistant'"),
        ([person()], "non-empty content"),
        ([person({"type": "text", "text": ""})], "non-whitespace"),
        ([USER, assistant({"type": "text", "text": " \n"}), USER], "non-whitespace"),
        ([USER, USED, USER], "without `tool_result` blocks immediately after: c1"),
        ([USER, assistant(USE, {**USE, "id": "c2"}), person(DONE)], "immediately after: c2"),
        ([person(DONE)], "unexpected `tool_use_id`"),
        ([USER, USED, person(DONE), SAID, person(DONE)], "unexpected `tool_use_id`"),
        ([USER, USED, person(DONE, DONE)], "single result"),
        ([USER, USED, person(TEXT, DONE)], "must come first"),
        ([USER, USED, person({**DONE, "content": ""})], "must be non-empty"),
        ([USER, USED, person(DONE), USED, person(DONE)], "must be unique"),
        ([USER, assistant({**USE, "id": "a.b"}), person({**DONE, "tool_use_id": "a.b"})], "should match pattern"),
        ([USER, assistant({**USE, "input": "{}"}), person(DONE)], "valid dictionary"),
        ([USER, assistant({**THOUGHT, "signature": "forged"}, TEXT), USER], "Invalid `signature` in `thinking` block"),
        ([USER, assistant({**THOUGHT, "thinking": "else"}, TEXT), USER], "Invalid `signature` in `thinking` block"),
        ([USER, assistant({"type": "redacted_thinking", "data": "x"}, TEXT), USER], "Invalid `data`"),
        ([USER, assistant(TEXT, THOUGHT), USER], "Expected `thinking`"),
        ([person({"type": "image_url"})], "does not match any of the expected tags"),
    ],
)
async def test_an_illegal_history_of_anthropic_is_refused(server: ModelServer, messages: list[Any], says: str) -> None:
    status, body = await ask(server, "/v1/messages", messages, max_tokens=10)
    assert (status, body["type"], body["error"]["type"]) == (400, "error", "invalid_request_error")
    assert says in body["error"]["message"]
    assert server.refusals == [body["error"]["message"]]


async def test_anthropic_wants_a_limit_and_no_blank_system_prompt(server: ModelServer) -> None:
    assert (await ask(server, "/v1/messages", [USER]))[1]["error"]["message"] == "max_tokens: Field required"
    assert (await ask(server, "/v1/messages", [USER], max_tokens=1, system=" "))[0] == 400


async def test_a_history_larger_than_the_window_is_refused() -> None:
    async with ModelServer(window_characters=100) as server:
        long = [{"role": "user", "content": "x" * 200}]
        assert (await ask(server, "/v1/chat/completions", long))[1]["error"]["code"] == "context_length_exceeded"
        assert "prompt is too long" in (await ask(server, "/v1/messages", long, max_tokens=1))[1]["error"]["message"]
        assert (await ask(server, "/v1/chat/completions", [USER]))[0] == 200


async def test_a_fault_spares_the_requests_after_it(server: ModelServer) -> None:
    server.fail_next(Fault.RATE_LIMITED)
    server.fail_next(Fault.SERVER_ERROR)
    statuses = [(await ask(server, "/v1/chat/completions", [USER]))[0] for _ in range(3)]
    assert statuses == [429, 500, 200]


async def test_an_answer_without_a_stream_and_the_list_of_models(server: ModelServer) -> None:
    server.answer = lambda asked: Answer(text="Hi", thinking="hm", calls=[Call(name="add")])
    url = server.openai_url
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/chat/completions", json={"model": "m", "messages": [USER]}) as response:
            message = (await response.json())["choices"][0]["message"]
        async with session.get(f"{url}/models") as response:
            assert [model["id"] for model in (await response.json())["data"]] == ["loopback"]
    assert (message["content"], message["reasoning_content"]) == ("Hi", "hm")
    assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": "{}"}


async def test_another_process_can_be_held_and_let_go(server: ModelServer) -> None:
    code = (
        "import json, sys, urllib.request\n"
        "body = json.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': 'Hi'}]}).encode()\n"
        "asked = urllib.request.Request(sys.argv[1], body, {'content-type': 'application/json'})\n"
        "print(json.load(urllib.request.urlopen(asked))['choices'][0]['message']['content'])\n"
    )
    server.hold()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, f"{server.openai_url}/chat/completions", stdout=subprocess.PIPE
    )
    await server.arrived(1)
    assert server.in_flight == 1
    assert json.dumps(server.requests[0]["messages"]) == '[{"role": "user", "content": "Hi"}]'
    server.release()
    out, _ = await process.communicate()
    assert out.decode().strip() == "answer to: Hi"
    await server.idle()


def test_the_loopback_server_uses_nothing_of_the_gateway() -> None:
    folder = Path(__file__).parents[1] / "loopback"
    assert not [path.name for path in folder.glob("models*.py") if "gateway." in path.read_text()]
