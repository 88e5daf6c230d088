"""A history begins where it began, as long as it can: what was sent stays a prefix of what is sent next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.legality import joined
from gateway.domain.message import Message, Role
from gateway.domain.replay.budget import SHARE_AFTER_CUT
from gateway.domain.replay.pipeline import Terms, replay
from gateway.domain.replay.timeline import Timeline
from tests.domain.replay.rows import ROOMY, histories, history, is_legal, letters, replayed, row


def wire(messages: Sequence[Message]) -> list[tuple[object, ...]]:
    """Return what a provider is sent of messages."""
    return [(m.role, m.content, m.tool_calls, m.tool_call_id, m.thinking_blocks) for m in messages]


def a_turn(number: int, seq: int, size: int) -> list[Message]:
    return [row(Role.USER, f"u{number} " + "x" * size, seq), row(Role.ASSISTANT, f"a{number} " + "y" * size, seq + 1)]


@given(st.lists(st.integers(0, 60), min_size=2, max_size=40), st.integers(200, 600))
@settings(max_examples=200)
def test_without_a_cut_each_turn_begins_with_the_one_before_byte_for_byte(sizes: list[int], budget: int) -> None:
    rows: list[Message] = []
    begin, before = 0, None
    for number, size in enumerate(sizes):
        rows += a_turn(number, len(rows) + 1, size)
        asked = [*rows, row(Role.USER, f"q{number}", len(rows) + 1)]
        now = replayed(asked, budget, begin=begin)
        assert now.tokens <= budget
        if before is not None and now.begin == begin:
            stored = wire(before)
            # The newest question of the turn before was `q`, which was not stored here: all before it is.
            assert wire(now.messages)[: len(stored) - 1] == stored[:-1]
        begin, before = now.begin, now.messages


@given(st.lists(st.integers(0, 40), min_size=30, max_size=60))
@settings(max_examples=60)
def test_after_a_cut_a_quarter_of_the_budget_is_free_so_cuts_are_rare(sizes: list[int]) -> None:
    rows: list[Message] = []
    begins = [0]
    for number, size in enumerate(sizes):
        rows += a_turn(number, len(rows) + 1, size)
        sent = replayed([*rows, row(Role.USER, "?", len(rows) + 1)], 600, begin=begins[-1])
        if sent.begin != begins[-1]:
            assert sent.tokens <= 600 * SHARE_AFTER_CUT
        begins.append(sent.begin)
    assert begins == sorted(begins)
    # A quarter of 600 tokens is at least one turn of at most 98.
    assert len(set(begins)) <= len(sizes) / 1.4 + 2


@given(histories, st.integers(20, 300), st.data())
@settings(max_examples=300)
def test_rows_that_come_one_by_one_give_what_they_give_at_once(
    rows: list[Message], budget: int, data: st.DataObject
) -> None:
    terms = Terms(budget=budget)
    timeline = Timeline(terms.reading(letters))
    left = list(rows)
    while left:
        size = data.draw(st.integers(1, len(left)))
        timeline.add(left[:size])
        del left[:size]
        replay(timeline, terms)
    step_by_step, at_once = replay(timeline, terms), replayed(rows, budget)
    assert wire(step_by_step.messages) == wire(at_once.messages)
    assert step_by_step.tokens == at_once.tokens
    assert sorted((one.seq, one.reason) for one in step_by_step.left_out) == sorted(
        (one.seq, one.reason) for one in at_once.left_out
    )


def test_a_late_result_still_finds_its_call_in_a_settled_part() -> None:
    rows = history(("user", "u1"), ("assistant", "", ["x"]), ("user", "u2"), ("assistant", "a2"), ("user", "u3"))
    timeline = Timeline(Terms(budget=ROOMY).reading(letters))
    timeline.add(rows)
    timeline.add([replace(row(Role.TOOL, "found", 6, answers="x"))])
    assert [message.text for message in timeline.messages] == ["u1", "", "found", "u2", "a2", "u3"]


def test_an_id_that_a_model_uses_again_gets_a_new_one() -> None:
    exchange = [("assistant", "", ["call_0"]), ("tool", "found", "call_0")]
    rows = history(("user", "u1"), *exchange, ("user", "u2"), *exchange, ("user", "u3"))  # type: ignore[arg-type]
    sent = replayed(rows).messages
    ids = [call.id for message in sent for call in message.tool_calls]
    assert len(set(ids)) == 2
    assert [message.tool_call_id for message in sent if message.role is Role.TOOL] == ids
    assert is_legal(sent)


def test_a_long_tool_turn_keeps_its_question_and_moves_by_whole_rounds() -> None:
    rows = history(("user", "go"))
    begin = 0
    for number in range(60):
        seq = len(rows) + 1
        rows += [
            row(Role.ASSISTANT, "…", seq, calls=[f"c{number}"]),
            row(Role.TOOL, "found " * 5, seq + 1, answers=f"c{number}"),
        ]
        sent = replayed(rows, 300, begin=begin)
        assert is_legal(sent.messages)
        assert sent.messages[0].text == "go"
        assert sent.messages[-1].tool_call_id == f"c{number}-{seq}"
        assert sent.tokens <= 300
        begin = sent.begin
    assert begin > 1


def test_joining_is_the_same_whenever_it_is_done() -> None:
    rows = history(("user", "a"), ("user", "b"), ("assistant", "c"))
    assert joined(joined(rows)) == joined(rows)
