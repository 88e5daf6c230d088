"""Where the rows begin that stay as they are: at a legal place, keeping as much as fits, and never without progress."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.domain.compaction.boundary import pick_boundary
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.replay.timeline import cost
from gateway.domain.replay.window import is_visible
from tests.domain.compaction.rows import any_rows, bot, call, numbered, result, user


def speaks(row: Message) -> bool:
    return is_visible(row) and (row.role is Role.USER or (row.role is Role.ASSISTANT and row.kind is Kind.ANNOUNCEMENT))


def answers(row: Message) -> bool:
    return is_visible(row) and row.role is Role.ASSISTANT and not speaks(row)


def is_parted(rows: Sequence[Message], at: int) -> bool:
    """Whether a result at or after a place belongs to a call before it, each looked up from scratch."""
    for later in range(at, len(rows)):
        if not (is_visible(rows[later]) and rows[later].role is Role.TOOL):
            continue
        for earlier in range(later - 1, -1, -1):
            row = rows[earlier]
            calls = [one.id for one in row.tool_calls] if row.role is Role.ASSISTANT and is_visible(row) else []
            if rows[later].tool_call_id in calls:
                if earlier < at:
                    return True
                break
    return False


def tail(rows: Sequence[Message], at: int) -> int:
    return sum(cost(row) for row in rows[at:] if is_visible(row))


def oracle(rows: Sequence[Message], budget: int) -> int | None:
    """Choose as the rules are worded, with every sum and every look-up made anew."""
    legal = [at for at in range(len(rows)) if not is_parted(rows, at)]
    users = [at for at in legal if speaks(rows[at])]
    bots = [at for at in legal if answers(rows[at])]
    fitting = [at for at in users if tail(rows, at) <= budget]
    if not fitting:
        inside = [at for at in bots if not users or at > users[-1]]
        fitting = [at for at in inside if tail(rows, at) <= budget] or inside[-1:] or users[-1:]
    if not fitting or not any(is_visible(row) for row in rows[: fitting[0]]):
        return None
    return rows[fitting[0]].seq


@given(any_rows, st.integers(0, 250))
@settings(max_examples=600)
def test_one_pass_chooses_what_the_rules_say(rows: list[Message], budget: int) -> None:
    assert pick_boundary(rows, budget) == oracle(rows, budget)


@given(any_rows, st.integers(0, 250))
@settings(max_examples=300)
def test_a_boundary_makes_progress_and_parts_no_call_from_its_result(rows: list[Message], budget: int) -> None:
    seq = pick_boundary(rows, budget)
    if seq is None:
        return
    at = next(place for place, row in enumerate(rows) if row.seq == seq)
    assert any(is_visible(row) for row in rows[:at])
    assert not is_parted(rows, at)
    later = [place for place in range(at + 1, len(rows)) if answers(rows[place]) and not is_parted(rows, place)]
    assert tail(rows, at) <= budget or not later


def test_as_many_turns_stay_as_fit() -> None:
    rows = numbered([user(), bot()] * 10)
    assert pick_boundary(rows, 60) == 15
    assert pick_boundary(rows, 59) == 17


def test_what_fits_as_a_whole_is_left_alone() -> None:
    assert pick_boundary(numbered([user(), bot()] * 3), 60) is None
    assert pick_boundary([], 60) is None


def test_a_turn_too_large_is_cut_at_one_of_its_rounds() -> None:
    rounds = [row for n in range(40) for row in (call(str(n)), result(str(n)))]
    assert pick_boundary(numbered([user(), *rounds]), 200) == 62


def test_where_no_round_fits_the_last_one_stays() -> None:
    rows = numbered([user(), call("1"), result("1"), call("2"), result("2", tokens=9_000)])
    assert pick_boundary(rows, 100) == 4


def test_a_question_too_large_stays_and_what_was_before_it_goes() -> None:
    assert pick_boundary(numbered([user(), bot(), user(tokens=9_000)]), 100) == 3


def test_rounds_without_any_question_are_cut_too() -> None:
    rows = numbered([row for n in range(5) for row in (call(str(n)), result(str(n)))])
    assert pick_boundary(rows, 45) == 7
    assert pick_boundary(rows, 5) == 9


def test_a_round_alone_cannot_be_made_smaller() -> None:
    assert pick_boundary(numbered([call("1"), result("1", tokens=9_000)]), 100) is None


def test_a_late_result_keeps_all_since_its_call_together() -> None:
    rows = numbered([user(), bot(), user(), call("1"), user(), bot(), result("1"), bot(), user()])
    assert pick_boundary(rows, 50) == 9
    assert pick_boundary(rows, 70) == 3


def test_an_id_that_is_used_again_belongs_to_the_nearest_call() -> None:
    rows = numbered([user(), call("x"), result("x")] * 4)
    assert pick_boundary(rows, 30) == 10


def test_hidden_rows_cost_nothing_and_begin_nothing() -> None:
    hidden = replace(user(tokens=9_000), marks=frozenset({Mark.UNDONE}))
    rows = numbered([user(), bot(), hidden, user(), replace(hidden, kind=Kind.COMMAND), bot()])
    assert pick_boundary(rows, 20) == 4
    assert pick_boundary(numbered([hidden, user(), bot()]), 20) is None


def test_a_report_begins_a_tail_whoever_it_is_stored_as() -> None:
    report = bot(kind=Kind.ANNOUNCEMENT)
    assert pick_boundary(numbered([user(), bot(), report, bot()]), 20) == 3


@given(any_rows, st.integers(0, 250))
@example(numbered([user(tokens=0), user(tokens=0)]), 0)
def test_the_rows_that_stay_can_be_shortened_again_only_if_more_come(rows: list[Message], budget: int) -> None:
    passes = 0
    while (seq := pick_boundary(rows, budget)) is not None:
        rows = [row for row in rows if row.seq >= seq]
        passes += 1
        assert passes <= 24
