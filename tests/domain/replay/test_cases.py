"""Histories that have stopped other gateways, and what the ancestors did with theirs."""

from __future__ import annotations

import json

import pytest

from gateway.domain.legality import INTERRUPTED
from gateway.domain.message import Kind, Message, Role, ToolCall
from tests.domain.replay.rows import ROOMY, history, is_legal, replayed, row, shape


def test_a1_a_stray_result_after_the_newest_question_costs_only_itself() -> None:
    rows = history(("user", "q1"), ("assistant", "", ["A"]), ("tool", "found", "A"), ("user", "q2"), ("tool", "B", "B"))
    for most in (None, 3):
        sent = replayed(rows, most_messages=most).messages
        assert sent[-1].text == "q2"
        assert "B" not in [message.tool_call_id for message in sent]


def test_a2_results_without_the_message_that_asked_for_them_are_left_out() -> None:
    rows = history(("user", "unanswered"), ("tool", "found", "A"), ("assistant", "done"), ("user", "next"))
    assert shape(replayed(rows).messages) == [("user", "unanswered"), ("assistant", "done"), ("user", "next")]


@pytest.mark.parametrize("most", range(1, 200, 3))
def test_a3_no_window_begins_in_the_middle_of_an_exchange(most: int) -> None:
    rounds = [entry for n in range(60) for entry in (("assistant", "…", [f"c{n}"]), ("tool", "found", f"c{n}"))]
    rows = history(("user", "before"), ("assistant", "yes"), ("user", "go"), *rounds)  # type: ignore[arg-type]
    for extend in (False, True):
        assert is_legal(replayed(rows, most_messages=most, extend_to_user=extend).messages)


def test_a5_of_two_results_for_one_call_the_newest_is_kept_and_one_without_an_id_is_not() -> None:
    rows = history(("user", "q"), ("assistant", "", ["A"]), ("tool", "1", "A"), ("tool", "2", "A"), ("tool", "3"))
    assert [message.text for message in replayed(rows).messages if message.role is Role.TOOL] == ["2"]


def test_a6_a_process_that_died_over_a_call_leaves_a_chat_that_goes_on() -> None:
    rows = history(("user", "do it"), ("assistant", None, ["X"]), ("user", "hi"))
    assert [m.text for m in replayed(rows).messages] == ["do it", "", INTERRUPTED, "hi"]


@pytest.mark.parametrize("arguments", ["", "null", "{", "[1]", '"x"', "[" * 5_000])
def test_a9_a_call_with_broken_arguments_is_replayed_with_none(arguments: str) -> None:
    call = ToolCall(id="A", name="look", arguments=arguments)
    asked = Message(role=Role.ASSISTANT, tool_calls=(call,), seq=2, tokens=5)
    sent = replayed([row(Role.USER, "q", 1), asked, row(Role.TOOL, "found", 3, answers="A")]).messages
    assert json.loads(sent[1].tool_calls[0].arguments) == {}
    assert is_legal(sent)


def test_a11_a_null_answer_that_was_stored_poisons_nothing() -> None:
    rows = history(("user", "q1"), ("assistant", None), ("user", "q2"))
    assert all(message.content for message in replayed(rows).messages)


def test_a12_two_messages_of_one_role_are_joined_and_an_announcement_between_them_stays_there() -> None:
    told = Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content="build done", seq=3, tokens=5)
    rows = [row(Role.USER, "a", 1), row(Role.USER, "b", 2), told, row(Role.USER, "c", 4)]
    assert shape(replayed(rows).messages) == [("user", "a\n\nb\n\nbuild done\n\nc")]


@pytest.mark.parametrize("provider", ["anthropic", "", "openai"])
def test_a14_a17_thinking_goes_back_to_its_own_provider_only_and_to_nobody_when_it_is_off(provider: str) -> None:
    thought = Message(
        role=Role.ASSISTANT,
        content="said",
        thinking_blocks=({"type": "thinking", "thinking": "hm", "signature": "s"},),
        provider="anthropic",
        seq=2,
        tokens=5,
    )
    sent = replayed([row(Role.USER, "q", 1), thought], provider=provider).messages[1]
    assert sent.text == "said"
    assert bool(sent.thinking_blocks) is (provider == "anthropic")


def test_b7_a_small_budget_keeps_the_bots_last_question_for_the_persons_yes() -> None:
    rows = history(("user", "u" * 400), ("assistant", "shall I deploy?"), ("user", "yes"))
    assert [m.text for m in replayed(rows, 80).messages][1:] == ["shall I deploy?", "yes"]


def test_h8_a_text_result_late_in_a_long_session_is_still_text() -> None:
    entries = [entry for n in range(100) for entry in (("user", f"q{n}"), ("assistant", f"a{n}"))]
    lines = "\n".join(f"line {n}" for n in range(50))
    rows = history(*entries, ("user", "run"), ("assistant", "", ["A"]), ("tool", lines, "A"))  # type: ignore[arg-type]
    assert replayed(rows).messages[-1].text == lines


def test_a_late_orphan_result_discards_nothing_that_stands_before_it() -> None:
    """Where the first ancestor kept `u3` alone."""
    rows = history(("user", "u1"), ("assistant", "a1"), ("user", "u2"), ("tool", "?", "undeclared"), ("user", "u3"))
    assert shape(replayed(rows).messages) == [("user", "u1"), ("assistant", "a1"), ("user", "u2\n\nu3")]


def test_an_assistant_row_with_an_empty_list_of_calls_and_no_words_is_left_out() -> None:
    rows = [row(Role.USER, "q", 1), Message(role=Role.ASSISTANT, content="", seq=2, tokens=4)]
    assert shape(replayed(rows, ROOMY).messages) == [("user", "q")]
