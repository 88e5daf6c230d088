"""Tool calls: handed on as they were written, mended when they go out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import TextPart, ToolCallPart, ToolReturnPart

from gateway.domain.message import Message, Role, ToolCall
from gateway.model.calls import call_of, call_part, is_object
from gateway.model.history import Target, to_history
from gateway.ports.model import Style, ToolCallRequested


def test_finished_parts_become_events() -> None:
    assert call_of(ToolCallPart("add", '{"a": 1 ', "c")) == ToolCallRequested("c", "add", '{"a": 1 ')
    assert call_of(ToolCallPart("add", {"a": "é"}, "c")) == ToolCallRequested("c", "add", '{"a": "é"}')
    assert call_of(ToolCallPart("add", None, "c")) == ToolCallRequested("c", "add", "{}")
    assert call_of(ToolCallPart("add", "", "c")) == ToolCallRequested("c", "add", "{}")
    assert call_of(TextPart(content="hm")) is None


@given(st.text())
def test_any_arguments_replay_as_an_object(arguments: str) -> None:
    part = call_part(ToolCall(id="c", name="add", arguments=arguments), Style.OPENAI)
    assert is_object(str(part.args))
    assert part.args == (arguments if is_object(arguments) else "{}")


@pytest.mark.parametrize(
    "arguments",
    [
        "[" * 100_000,
        '{"a": ' + "[" * 900 + "]" * 900 + "}",
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5_000 + "}",
        '{"a": "\\ud83d"}',
        "null",
        '"a"',
    ],
)
def test_arguments_that_cannot_be_sent_are_broken_ones(arguments: str) -> None:
    assert not is_object(arguments)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_ids_of_calls_are_respelt_the_same_for_call_and_result_and_never_meet(ids: list[str]) -> None:
    calls = tuple(ToolCall(id=id, name="add", arguments="{}") for id in ids)
    rows = [Message(role=Role.ASSISTANT, tool_calls=calls)]
    rows += [Message(role=Role.TOOL, tool_call_id=id, content=id) for id in ids]
    for style in Style:
        answer, results = to_history(rows, Target(provider=style.value, style=style))
        spelt = [part.tool_call_id for part in answer.parts if isinstance(part, ToolCallPart)]
        assert spelt == [part.tool_call_id for part in results.parts if isinstance(part, ToolReturnPart)]
        assert len(set(spelt)) == 2
