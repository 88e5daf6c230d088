"""Rows to the library's messages and back, as the golden files say, and legal on both wires."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse, TextPart, ThinkingPart, ToolCallPart

from gateway.domain.message import Message, Role, ToolCall
from gateway.model.mapping import Target, call_of, is_object, replays_thinking, row_of, thinking_of, to_history, to_rows
from gateway.ports.model import Style, Thinking, ToolCallRequested
from tests.model import golden_cases

OPENAI = Target(provider="openai", style=Style.OPENAI)
ANTHROPIC = Target(provider="anthropic", style=Style.ANTHROPIC)


@pytest.mark.parametrize("case", golden_cases.cases())
@pytest.mark.parametrize("style", list(Style))
def test_rows_become_the_messages_of_the_golden_file(case: str, style: Style) -> None:
    golden = golden_cases.read(case)
    history = golden_cases.history_of(golden, style)
    assert golden_cases.dumped(history) == golden["expected"][style.value]["history"]


@pytest.mark.parametrize("case", golden_cases.cases())
@pytest.mark.parametrize("style", list(Style))
def test_messages_become_the_rows_of_the_golden_file(case: str, style: Style) -> None:
    golden = golden_cases.read(case)
    rows = to_rows(golden_cases.history_of(golden, style), style.value)
    assert [golden_cases.row_to(row) for row in rows] == golden["expected"][style.value]["back"]


@pytest.mark.parametrize("case", golden_cases.cases())
@pytest.mark.parametrize("style", list(Style))
def test_messages_survive_the_way_back_unchanged(case: str, style: Style) -> None:
    golden = golden_cases.read(case)
    history = golden_cases.history_of(golden, style)
    again = to_history(to_rows(history, style.value), Target(provider=style.value, style=style, vision=True))
    assert golden_cases.dumped(again) == golden_cases.dumped(history)


@pytest.mark.parametrize("case", golden_cases.cases())
@pytest.mark.parametrize("style", list(Style))
async def test_the_wire_is_that_of_the_golden_file_and_legal(case: str, style: Style) -> None:
    golden = golden_cases.read(case)
    assert await golden_cases.on_the_wire(golden, style) == (golden["expected"][style.value]["wire"], [])


@pytest.mark.parametrize("case", golden_cases.cases())
def test_the_library_can_read_again_what_it_wrote(case: str) -> None:
    history = golden_cases.history_of(golden_cases.read(case), Style.ANTHROPIC)
    written = ModelMessagesTypeAdapter.dump_json(history)
    assert ModelMessagesTypeAdapter.dump_json(ModelMessagesTypeAdapter.validate_json(written)) == written


def test_pictures_are_left_out_for_a_model_that_cannot_see() -> None:
    golden = golden_cases.read("pictures")
    history = to_history(golden_cases.rows_of(golden), OPENAI)
    assert "base64" not in str(golden_cases.dumped(history))


def test_system_rows_join_the_system_prompt() -> None:
    rows = [Message(role=Role.SYSTEM, content="Be brief."), Message(role=Role.USER, content="Hi")]
    both = to_history(rows, OPENAI, system="Be kind.")
    assert [row.content for row in to_rows(both, "openai")] == ["Be kind.\n\nBe brief.", "Hi"]


def test_a_history_that_opens_with_an_answer_still_carries_the_system_prompt() -> None:
    history = to_history([Message(role=Role.ASSISTANT, content="Hi")], OPENAI, system="Be kind.")
    assert [row.role for row in to_rows(history, "openai")] == [Role.SYSTEM, Role.ASSISTANT]


def test_thinking_is_noticed_only_when_it_is_sent() -> None:
    rows = golden_cases.rows_of(golden_cases.read("thinking"))
    assert replays_thinking(to_history(rows, ANTHROPIC))
    assert not replays_thinking(to_history(rows, OPENAI))


def test_finished_parts_become_events() -> None:
    assert thinking_of(ThinkingPart(content="hm", signature="s"), "p") == Thinking("hm", "p", "s")
    assert thinking_of(ThinkingPart(content="hm"), "p") == Thinking("hm", "p")
    assert thinking_of(ThinkingPart(content=""), "p") is None
    assert thinking_of(TextPart(content="hm"), "p") is None
    assert call_of(ToolCallPart("add", '{"a": 1 ', "c")) == ToolCallRequested("c", "add", '{"a": 1 ')
    assert call_of(ToolCallPart("add", {"a": "é"}, "c")) == ToolCallRequested("c", "add", '{"a": "é"}')
    assert call_of(ToolCallPart("add", None, "c")) == ToolCallRequested("c", "add", "{}")
    assert call_of(ToolCallPart("add", "", "c")) == ToolCallRequested("c", "add", "{}")
    assert call_of(TextPart(content="hm")) is None


def test_hidden_thinking_comes_back_as_it_was() -> None:
    hidden = ThinkingPart(content="", id="redacted_thinking", signature="data", provider_name="anthropic")
    row = row_of(ModelResponse(parts=[hidden, TextPart(content="Hi")]), "anthropic")
    back = to_history([row], ANTHROPIC)[0]
    assert back.parts[0] == hidden


@given(st.text())
def test_any_arguments_replay_as_an_object(arguments: str) -> None:
    call = ToolCall(id="c", name="add", arguments=arguments)
    history = to_history([Message(role=Role.ASSISTANT, tool_calls=(call,))], OPENAI)
    (part,) = history[0].parts
    assert isinstance(part, ToolCallPart)
    assert is_object(str(part.args))
    assert part.args_as_dict() == (part.args_as_dict() if is_object(arguments) else {})


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
    for target in (OPENAI, ANTHROPIC):
        answer, results = (
            to_rows(to_history(rows, target), target.provider)[0],
            to_rows(to_history(rows, target), "")[1:],
        )
        spelt = [call.id for call in answer.tool_calls]
        assert spelt == [row.tool_call_id for row in results]
        assert len(set(spelt)) == 2


def test_a_row_is_not_changed_by_being_mapped() -> None:
    rows = golden_cases.rows_of(golden_cases.read("mended"))
    before = [dataclasses.replace(row) for row in rows]
    to_history(rows, ANTHROPIC)
    assert rows == before
