"""Rows as the library's messages, and answers as rows, as the golden files say, and legal on both wires."""

from __future__ import annotations

import dataclasses

import pytest
from pydantic_ai.messages import ModelMessagesTypeAdapter, SystemPromptPart

from gateway.domain.message import Message, Role
from gateway.model.history import Target, to_history
from gateway.ports.model import Style
from tests.model import golden_cases

OPENAI = Target(provider="openai", style=Style.OPENAI)
ANTHROPIC = Target(provider="anthropic", style=Style.ANTHROPIC)

every_case = pytest.mark.parametrize("case", golden_cases.cases())
each_style = pytest.mark.parametrize("style", list(Style))


@every_case
@each_style
def test_rows_become_the_messages_of_the_golden_file(case: str, style: Style) -> None:
    golden = golden_cases.read(case)
    history = golden_cases.history_of(golden, style)
    assert golden_cases.dumped(history) == golden["expected"][style.value]["history"]


@every_case
@each_style
async def test_the_wire_and_the_row_of_the_answer_are_those_of_the_golden_file_and_legal(
    case: str, style: Style
) -> None:
    golden = golden_cases.read(case)
    told = await golden_cases.exchange(golden, style)
    expected = golden["expected"][style.value]
    assert (told.wire, told.row, told.again) == (expected["wire"], expected["row"], expected["again"])
    assert told.refusals == []


@every_case
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
    (both,) = to_history(rows, OPENAI, system="Be kind.")
    assert [getattr(part, "content", None) for part in both.parts] == ["Be kind.\n\nBe brief.", "Hi"]


def test_a_history_that_opens_with_an_answer_still_carries_the_system_prompt() -> None:
    first, second = to_history([Message(role=Role.ASSISTANT, content="Hi")], OPENAI, system="Be kind.")
    (prompt,) = first.parts
    assert isinstance(prompt, SystemPromptPart)
    assert [message.kind for message in (first, second)] == ["request", "response"]


def test_a_row_is_not_changed_by_being_mapped() -> None:
    rows = golden_cases.rows_of(golden_cases.read("mended"))
    before = [dataclasses.replace(row) for row in rows]
    to_history(rows, ANTHROPIC)
    assert rows == before
