"""The model that follows a script."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.domain.errors import AuthFailed, ContextOverflow, Filtered, Refused, ThinkingRefused, Unavailable
from gateway.domain.turn import Usage
from gateway.model.options import ModelOptions
from gateway.model.scripted import Scripted
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    Thinking,
    ToolCallRequested,
    UsageReported,
)
from tests.model.rigs import heard, user


def scripted(*steps: object) -> Scripted:
    return Scripted(ModelOptions(), steps)  # type: ignore[arg-type]


def asking(text: str = "Hello") -> ModelRequest:
    return ModelRequest(model="scripted:x", messages=[user(text)])


async def test_steps_are_used_up_in_order() -> None:
    model = scripted("one", "two")
    assert [await model.complete(asking()) for _ in range(2)] == ["one", "two"]
    with pytest.raises(Refused, match="no step left"):
        await model.complete(asking())
    assert len(model.requests) == 3


async def test_a_step_may_wait_for_words_and_then_answers_always() -> None:
    model = scripted("one", {"when": "weather", "events": [{"text": "rain"}]}, "two")
    said = [await model.complete(asking(text)) for text in ("the weather?", "hi", "weather", "hi")]
    assert said == ["rain", "one", "rain", "two"]


async def test_events_come_as_written() -> None:
    events = [
        {"thinking": "hm", "signature": "s"},
        {"text": "a b"},
        {"tool": "add", "arguments": {"a": 1}},
        {"usage": {"input_tokens": 3, "output_tokens": 2}},
    ]
    heard_events = await heard(scripted({"events": events}), asking())
    assert heard_events[:4] == [
        Thinking("hm", "scripted", "s"),
        TextDelta("a "),
        TextDelta("b"),
        ToolCallRequested("call_1", "add", '{"a": 1}'),
    ]
    assert isinstance(usage := heard_events[4], UsageReported)
    assert (usage.usage.input_tokens, usage.usage.output_tokens) == (3, 2)
    assert heard_events[5] == Finish(FinishReason.TOOLS)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overflow", ContextOverflow),
        ("unavailable", Unavailable),
        ("auth", AuthFailed),
        ("thinking", ThinkingRefused),
        ("filtered", Filtered),
        ("refused", Refused),
        ("typo", Refused),
    ],
)
async def test_errors_come_by_their_kind(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        await heard(scripted({"events": [{"error": kind}]}), asking())


async def test_a_filter_ends_an_answer_after_its_words_and_its_usage() -> None:
    events: list[ModelEvent] = []
    script = [{"text": "a"}, {"finish": "filter"}, {"usage": {"output_tokens": 2}}]
    with pytest.raises(Filtered):
        await heard(scripted({"events": script}), asking(), events)
    assert events == [TextDelta("a"), UsageReported(Usage(provider="scripted", model="x", output_tokens=2))]


async def test_a_finish_of_no_known_kind_is_told() -> None:
    with pytest.raises(Refused, match="expected a finish of stop, length, tools, filter in the script, got 'lenght'"):
        await heard(scripted({"events": [{"finish": "lenght"}]}), asking())


async def test_an_event_of_no_known_kind_is_told() -> None:
    with pytest.raises(Refused, match="txet"):
        await heard(scripted({"events": [{"txet": "a"}]}), asking())


async def test_an_answer_can_be_held_up() -> None:
    gate = asyncio.Event()
    events = scripted({"events": [{"delay": 0}, {"text": "a"}, {"wait": gate}, {"text": "b"}]}).stream(asking())
    assert await anext(events) == TextDelta("a")
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    assert await waiting == TextDelta("b")
    await events.aclose()


@pytest.mark.parametrize("content", [None, "{not json", "{}", '"text"'])
async def test_a_script_that_cannot_be_read_is_refused_without_its_path(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Refused, match=r"script\.json") as caught:
        await Scripted.read(ModelOptions(), path)
    assert str(tmp_path) not in str(caught.value)
