"""The fallback, and the limit of output that each model is sent: asked over a real connection."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.errors import AuthFailed, ContextOverflow, Refused, Unavailable
from gateway.domain.message import Message, Role, ToolCall
from gateway.ports.model import ModelEvent, UsageReported
from tests.loopback.models import Fault, ModelServer
from tests.model.rigs import asking, heard, models, text_of, user

OPENAI, ANTHROPIC = "openai:gpt-5", "anthropic:claude-sonnet-5-5"


def who(events: list[ModelEvent]) -> list[str]:
    return [f"{event.usage.provider}:{event.usage.model}" for event in events if isinstance(event, UsageReported)]


async def test_the_fallback_answers_for_a_model_that_is_unavailable(server: ModelServer, logged: list[str]) -> None:
    routes = models(server, fallback=ANTHROPIC)
    for fault in (Fault.OVERLOADED, Fault.RATE_LIMITED, Fault.QUOTA):
        server.fail_next(fault)
        events = await heard(routes, asking(OPENAI))
        assert (text_of(events), who(events)) == ("answer to: Hello", [ANTHROPIC])
    assert [line for line in logged if "replaced" in line] == ["WARNING model replaced by the fallback"]
    assert who(await heard(routes, asking(OPENAI))) == [OPENAI]
    assert logged[-1] == "INFO model answers again"
    server.fail_next(Fault.OVERLOADED)
    await heard(routes, asking(OPENAI))
    assert logged[-1] == "WARNING model replaced by the fallback"
    await routes.close()


def limits(server: ModelServer) -> list[dict[str, int]]:
    """Return the limits of output that were sent, by the name they were sent under."""
    names = ("max_tokens", "max_completion_tokens")
    return [{name: body[name] for name in names if name in body} for body in server.requests]


async def test_no_limit_is_sent_where_none_is_set_but_to_the_provider_that_requires_one(server: ModelServer) -> None:
    routes = models(server)
    for id in (OPENAI, "local:tiny", ANTHROPIC):
        await heard(routes, asking(id))
    assert limits(server) == [{}, {}, {"max_tokens": 64_000}]
    await routes.close()


async def test_a_limit_that_is_set_or_asked_for_is_sent_and_never_above_the_models_own(server: ModelServer) -> None:
    routes = models(server, max_output=500, windows={"local:tiny": 1_000})
    for id in (OPENAI, "local:tiny", ANTHROPIC):
        await heard(routes, asking(id))
    await heard(routes, replace(asking(OPENAI), max_output=7))
    assert limits(server) == [
        {"max_completion_tokens": 500},
        {"max_tokens": 250},
        {"max_tokens": 500},
        {"max_completion_tokens": 7},
    ]
    await routes.close()


@pytest.mark.parametrize(
    ("fallback", "asked", "sent"),
    [
        (ANTHROPIC, None, {"max_tokens": 64_000}),
        (ANTHROPIC, 100_000, {"max_tokens": 64_000}),
        (ANTHROPIC, 300, {"max_tokens": 300}),
        ("local:tiny", None, {}),
        ("local:tiny", 100_000, {"max_tokens": 2_000}),
    ],
)
async def test_the_fallback_is_sent_its_own_limit_and_not_that_of_the_model_it_replaces(
    server: ModelServer, fallback: str, asked: int | None, sent: dict[str, int]
) -> None:
    routes = models(server, fallback=fallback, windows={"local:tiny": 8_000})
    server.fail_next(Fault.OVERLOADED)
    assert who(await heard(routes, replace(asking(OPENAI), max_output=asked))) == [fallback]
    assert limits(server)[-1] == sent
    await routes.close()


async def test_a_history_too_large_for_the_fallback_is_told_of_the_fallback(server: ModelServer) -> None:
    routes = models(server, fallback=ANTHROPIC)
    server.fail_next(Fault.OVERLOADED)
    server.fail_next(Fault.OVERFLOW)
    with pytest.raises(ContextOverflow, match=f"larger than {ANTHROPIC} takes"):
        await heard(routes, asking(OPENAI))
    assert [body["model"] for body in server.requests] == ["gpt-5", "claude-sonnet-5-5"]
    await routes.close()


async def test_the_fallback_of_another_style_gets_a_history_it_takes(server: ModelServer) -> None:
    routes = models(server, fallback=ANTHROPIC)
    asked = asking(OPENAI)
    call = ToolCall(id="functions.add:0", name="add", arguments="{")
    rows = [
        user("Hello"),
        user("there"),
        Message(role=Role.ASSISTANT, tool_calls=(call,), reasoning_content="hm", provider="openai"),
        Message(role=Role.TOOL, tool_call_id=call.id, content=""),
        user("Hurry"),
        Message(role=Role.ASSISTANT, content="One."),
        Message(role=Role.ASSISTANT, content="Two."),
        user("Go on"),
    ]
    server.fail_next(Fault.OVERLOADED)
    assert who(await heard(routes, replace(asked, messages=rows))) == [ANTHROPIC]
    assert server.refusals == []
    await routes.close()


async def test_the_fallback_does_not_finish_an_answer_that_was_begun(server: ModelServer) -> None:
    routes = models(server, fallback=ANTHROPIC)
    server.answer = lambda asked: "first words"
    server.fail_next(Fault.DROPPED)
    events: list[ModelEvent] = []
    with pytest.raises(Unavailable):
        await heard(routes, asking(OPENAI), events)
    assert (text_of(events), len(server.requests)) == ("first ", 1)
    await routes.close()


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault.OVERFLOW, ContextOverflow), (Fault.UNAUTHORIZED, AuthFailed), (Fault.REFUSED, Refused)]
)
async def test_the_fallback_does_not_hide_what_it_cannot_mend(
    server: ModelServer, fault: Fault, error: type[Exception]
) -> None:
    routes = models(server, fallback=ANTHROPIC)
    server.fail_next(fault)
    with pytest.raises(error):
        await heard(routes, asking(OPENAI))
    assert len(server.requests) == 1
    await routes.close()


async def test_a_fallback_that_fails_too_is_told(server: ModelServer) -> None:
    routes = models(server, fallback=ANTHROPIC)
    server.fail_next(Fault.OVERLOADED, times=3)
    with pytest.raises(Unavailable, match="anthropic"):
        await heard(routes, asking(OPENAI))
    with pytest.raises(Unavailable, match="anthropic"):
        await heard(routes, asking(ANTHROPIC))
    assert len(server.requests) == 3
    await routes.close()
