"""Thinking: finished parts become events, and what is kept of them goes back as it was."""

from __future__ import annotations

from pydantic_ai.messages import TextPart, ThinkingPart

from gateway.domain.message import Message, Role
from gateway.domain.turn import Usage
from gateway.model.history import Target, to_history
from gateway.model.thinking import replays_thinking, thinking_of, thinking_parts
from gateway.ports.model import Style, TextDelta, Thinking, UsageReported
from tests.model import golden_cases
from tests.model.rigs import answer_row

OPENAI = Target(provider="openai", style=Style.OPENAI)
ANTHROPIC = Target(provider="anthropic", style=Style.ANTHROPIC)


async def row_of(thought: Thinking | None) -> Message:
    """Return the row that a turn keeps of an answer with this thinking."""
    assert thought is not None
    return await answer_row([thought, TextDelta("Hi"), UsageReported(Usage(provider=thought.provider, model="m"))])


def test_finished_parts_become_events() -> None:
    assert thinking_of(ThinkingPart(content="hm", signature="s"), "p") == Thinking("hm", "p", "s")
    assert thinking_of(ThinkingPart(content="hm"), "p") == Thinking("hm", "p")
    assert thinking_of(ThinkingPart(content=""), "p") is None
    assert thinking_of(TextPart(content="hm"), "p") is None


async def test_hidden_thinking_comes_back_as_it_was() -> None:
    hidden = ThinkingPart(content="", id="redacted_thinking", signature="data", provider_name="anthropic")
    row = await row_of(thinking_of(hidden, "anthropic"))
    assert list(thinking_parts(row, "anthropic", Style.ANTHROPIC)) == [hidden]


async def test_signed_thinking_goes_back_to_its_own_provider_only() -> None:
    signed = ThinkingPart(content="hm", signature="s", provider_name="anthropic")
    row = await row_of(thinking_of(signed, "anthropic"))
    assert list(thinking_parts(row, "anthropic", Style.ANTHROPIC)) == [signed]
    assert list(thinking_parts(row, "bedrock", Style.ANTHROPIC)) == []
    assert list(thinking_parts(row, "openai", Style.OPENAI)) == []


async def test_unsigned_thinking_goes_back_in_the_field_it_came_in() -> None:
    row = await row_of(Thinking("hm", "deepseek"))
    (part,) = thinking_parts(row, "deepseek", Style.OPENAI)
    assert (part.content, part.id) == ("hm", "reasoning_content")
    assert list(thinking_parts(row, "openai", Style.OPENAI)) == []


def test_thinking_is_noticed_only_when_it_is_sent() -> None:
    rows = golden_cases.rows_of(golden_cases.read("thinking"))
    assert replays_thinking(to_history(rows, ANTHROPIC))
    assert not replays_thinking(to_history(rows, OPENAI))


def test_thinking_of_a_row_that_names_nobody_goes_to_nobody() -> None:
    row = Message(role=Role.ASSISTANT, content="Hi", thinking_blocks=({"thinking": "hm", "signature": "s"},))
    assert list(thinking_parts(row, "anthropic", Style.ANTHROPIC)) == []
