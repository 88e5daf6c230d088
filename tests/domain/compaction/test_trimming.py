"""What is known after a compaction, with a summary or, where none can be had, without the oldest rows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.compaction.state import CompactionState
from gateway.domain.compaction.trimming import TRIM_NOTE, after_summary, trimmed
from gateway.domain.message import Kind, Message
from gateway.domain.replay.window import is_visible
from tests.domain.compaction.rows import any_rows, bot, call, numbered, result, user
from tests.domain.compaction.test_boundary import is_parted, tail


def at(rows: list[Message], target: int | None = None) -> int | None:
    made = trimmed(None, rows, target)
    return made[1] if made else None


def test_the_oldest_tenth_of_the_tokens_goes() -> None:
    assert at(numbered([user(), bot()] * 20)) == 5
    assert at(numbered([user(tokens=500), bot(tokens=500), *[user(), bot()] * 20])) == 3


def test_as_much_more_goes_as_lets_the_rest_fit() -> None:
    rows = numbered([user(), bot()] * 20)
    assert at(rows, 100) == 31
    assert at(rows, 390) == 5
    assert at(rows, 0) == 40


def test_a_whole_turn_goes_even_if_less_would_do() -> None:
    rounds = [row for n in range(10) for row in (call(str(n)), result(str(n)))]
    assert at(numbered([user(), *rounds, user(), bot()])) == 22


def test_the_only_turn_is_cut_at_one_of_its_rounds() -> None:
    rounds = [row for n in range(40) for row in (call(str(n)), result(str(n)))]
    assert at(numbered([user(), *rounds])) == 10


def test_a_place_before_the_tenth_is_better_than_none() -> None:
    assert at(numbered([user(), call("1"), result("1", tokens=9_000)])) == 2


def test_the_newest_exchange_is_not_trimmed() -> None:
    hidden = replace(user(), kind=Kind.COMMAND)
    assert at(numbered([user(), bot()])) is None
    assert at(numbered([hidden, user(), hidden, bot(), hidden])) is None
    assert at([]) is None


def test_what_cannot_be_parted_cannot_be_trimmed() -> None:
    assert at(numbered([call("1"), bot(), user(), result("1")])) is None


@given(any_rows, st.none() | st.integers(0, 300))
@settings(max_examples=400)
def test_a_trim_is_legal_makes_progress_and_ends(rows: list[Message], target: int | None) -> None:
    state = None
    while made := trimmed(state, rows, target):
        state, seq = made
        place = next(place for place, row in enumerate(rows) if row.seq == seq)
        assert not is_parted(rows, place)
        assert any(is_visible(row) for row in rows[:place])
        assert state.trimmed
        assert state.summary_text == TRIM_NOTE
        dropped = tail(rows, 0) - tail(rows, place)
        later = [p for p in range(place + 1, len(rows)) if at_place(rows, p)]
        assert dropped >= tail(rows, 0) * 0.1 or not later
        assert target is None or tail(rows, place) <= target or not later
        rows = rows[place:]


def at_place(rows: list[Message], place: int) -> bool:
    row = rows[place]
    return is_visible(row) and row.role.value in ("user", "assistant") and not is_parted(rows, place)


def test_the_earlier_summary_stays_and_the_note_stands_once() -> None:
    rows = numbered([user("one"), call("1", "write", {"path": "a"}), result("1"), user("two"), bot(), user("three")])
    before = CompactionState(summary_text="They met.", user_messages=["zero"], model_used="m")
    first, seq = trimmed(before, rows, created_at="2026-01-01") or (before, 0)
    assert seq == 4
    assert first == CompactionState(
        summary_text=f"They met.\n\n{TRIM_NOTE}",
        working_state={"files": ["a"], "tools": ["write"]},
        user_messages=["zero", "one"],
        created_at="2026-01-01",
        trimmed=True,
    )
    second, seq = trimmed(first, rows[3:]) or (before, 0)
    assert (second.summary_text, seq) == (first.summary_text, 6)
    assert list(second.user_messages) == ["zero", "one", "two"]


def test_a_summary_stands_for_the_rows_before_the_boundary_only() -> None:
    rows = numbered([user("one"), bot(), user("two"), bot()])
    before = CompactionState(summary_text="old", user_messages=["zero"], trimmed=True)
    state = after_summary(before, rows, 3, "new", created_at="2026-01-01", model_used="small")
    assert state == CompactionState(
        summary_text="new", user_messages=["zero", "one"], created_at="2026-01-01", model_used="small"
    )
