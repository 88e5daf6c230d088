"""Whatever is stored and whatever the budget: what goes out passes both providers' own rules, and caches stay good."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain.message import Message, Role
from gateway.domain.replay.pipeline import Terms, build
from gateway.ports.model import ModelRequest, Picture, Tail
from gateway.turns.answer import gather
from tests.domain.replay.rows import histories, letters, row
from tests.loopback.models import ModelServer
from tests.model.rigs import models, user

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
MODELS = ("anthropic:claude-sonnet-5-5", "openai:gpt-4o", "local:llama")
TAIL = Tail(text="[context: Monday 2026-11-30 12:00 UTC]", pictures=[Picture("image/png", PNG)])

each_model = pytest.mark.parametrize("model", MODELS)


async def sent(server: ModelServer, model: str, messages: Sequence[Message], tail: Tail = TAIL) -> dict[str, Any]:
    """Send a request and return its body as the server got it."""
    router = models(server)
    try:
        await gather(router.stream(ModelRequest(model=model, messages=messages, system="Be kind.", tail=tail)))
    finally:
        await router.close()
    return server.requests[-1]


@given(rows=st.lists(histories, min_size=4, max_size=8), budget=st.integers(20, 300))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_stored_history_is_refused_by_either_style(rows: list[list[Message]], budget: int) -> None:
    async def work() -> None:
        async with ModelServer() as server:
            server.strict_roles = True
            for one in rows:
                asked = [*one, row(Role.USER, "and now?", len(one) + 1)]
                messages = build(asked, Terms(budget=budget), letters).messages
                for model in MODELS:
                    body = await sent(server, model, messages)
                    assert "and now?" in json.dumps(body["messages"][-1])
            assert server.refusals == []

    asyncio.run(work())


@pytest.mark.parametrize("model", MODELS[:2])
async def test_the_tail_is_the_end_of_the_last_message(server: ModelServer, model: str) -> None:
    body = await sent(server, model, [user("hi")])
    last = body["messages"][-1]
    assert last["role"] == "user"
    end = last["content"][-1]
    assert end["type"] == ("image" if "anthropic" in model else "image_url")
    assert "Monday 2026-11-30" in json.dumps(last)


async def test_a_model_that_cannot_see_is_told_so(server: ModelServer) -> None:
    body = await sent(server, "openai:gpt-4", [user("hi")])
    assert "cannot be shown" in json.dumps(body["messages"][-1])
    assert "base64" not in json.dumps(body)


async def test_anthropic_is_told_to_cache_up_to_the_stored_part_and_no_further(server: ModelServer) -> None:
    exchange = [user("hi"), Message(role=Role.ASSISTANT, content="hello"), user("more")]
    body = await sent(server, MODELS[0], exchange)
    blocks = body["messages"][-1]["content"]
    marked = [block.get("text") for block in blocks if block.get("cache_control")]
    assert "more" in marked
    assert not any("[context" in str(text) for text in marked)


@each_model
async def test_on_the_wire_too_each_turn_begins_with_the_one_before(server: ModelServer, model: str) -> None:
    rows: list[Message] = []
    before: list[Any] = []
    for number in range(4):
        rows.append(row(Role.USER, f"q{number}", len(rows) + 1))
        messages = build(rows, Terms(budget=10_000), letters).messages
        body = await sent(server, model, messages, Tail(text=f"[context: {number}]"))
        now = [_plain(message) for message in body["messages"]]
        if before:
            # The last message of the turn before ends in its tail; all before it, and its own text, are the same.
            assert now[: len(before) - 1] == before[:-1]
            assert str(now[len(before) - 1]).startswith(str(before[-1]).partition("[context")[0].rstrip())
        before = now
        rows.append(row(Role.ASSISTANT, f"a{number}", len(rows) + 1))


async def test_instructions_and_tools_are_the_same_bytes_each_time(server: ModelServer) -> None:
    bodies = [await sent(server, MODELS[0], [user(text)]) for text in ("one", "two")]
    assert json.dumps(bodies[0]["system"]) == json.dumps(bodies[1]["system"])


def _plain(message: dict[str, Any]) -> str:
    """Return role and text of a message, without the marks of a cache, which move."""
    content = message["content"]
    blocks = [{"text": content}] if isinstance(content, str) else content
    return f"{message['role']}: " + "\n\n".join(block.get("text", block.get("type", "")) for block in blocks)
