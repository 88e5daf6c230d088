"""What the model is sent: legal whatever is stored, within the budget, with the newest question."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.decoration import STOPPED
from gateway.domain.legality import INTERRUPTED, WITHOUT_TEXT, joined, paired
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.replay.budget import OPENING_TOKENS
from gateway.tokens.o200k import O200kCounter
from tests.domain.replay.rows import ROOMY, histories, history, is_legal, replayed, row, shape


@given(histories, st.integers(1, 400))
@settings(max_examples=400)
def test_whatever_is_stored_the_replay_is_legal(rows: list[Message], budget: int) -> None:
    replay = replayed(rows, budget)
    assert is_legal(replay.messages)
    assert paired(replay.messages).messages == replay.messages


@given(histories, st.integers(1, 400))
@settings(max_examples=400)
def test_the_newest_question_is_there_and_the_budget_is_kept(rows: list[Message], budget: int) -> None:
    hidden = (Kind.COMMAND, Kind.NOTICE, Kind.COMPACTED)
    reports = [Kind.ANNOUNCEMENT]
    speaks = [r for r in rows if r.role is Role.USER or (r.role is Role.ASSISTANT and r.kind in reports)]
    asked = [r for r in speaks if not r.marks and r.kind not in hidden]
    replay = replayed(rows, budget)
    if asked:
        newest = [message for message in replay.messages if message.role is Role.USER][-1]
        words = STOPPED if asked[-1].kind is Kind.INTERRUPTED and asked[-1].role is Role.USER else asked[-1].text
        # A blank one is replaced by words that say so; of an oversized one at least both ends are there.
        assert newest.text.endswith(words[-10:] if words.strip() else WITHOUT_TEXT)
    # The words for a stop are ours, and are not made of the row's own.
    own = [len(STOPPED) if r.kind is Kind.INTERRUPTED else r.tokens or 0 for r in asked]
    assert replay.tokens <= max(budget, max(own, default=0), 16 * 3)


@given(histories)
def test_every_row_is_sent_or_left_out_with_a_reason(rows: list[Message]) -> None:
    replay = replayed(rows, ROOMY)
    explained = {left.seq for left in replay.left_out}
    words = "\n".join(message.text for message in replay.messages)
    for r in rows:
        # That somebody said stop is told in words of our own.
        said = STOPPED if r.kind is Kind.INTERRUPTED and r.role is Role.USER else r.text.strip()
        assert r.seq in explained or not said or said in words
    assert all(left.reason for left in replay.left_out)


def test_a_stray_result_costs_only_itself() -> None:
    rows = history(("user", "u1"), ("assistant", "a1"), ("user", "u2"), ("tool", "stray", "x"), ("user", "u3"))
    assert shape(replayed(rows, ROOMY).messages) == [("user", "u1"), ("assistant", "a1"), ("user", "u2\n\nu3")]


def test_a_call_that_was_never_answered_gets_a_result_that_says_so() -> None:
    rows = history(("user", "u1"), ("assistant", None, ["x"]), ("user", "hello?"))
    assert shape(replayed(rows, ROOMY).messages)[2] == ("tool", INTERRUPTED)


def test_a_late_result_moves_to_its_call() -> None:
    rows = history(("user", "u1"), ("assistant", "", ["x"]), ("user", "u2"), ("tool", "found", "x"))
    assert shape(replayed(rows, ROOMY).messages) == [
        ("user", "u1"), ("assistant", ""), ("tool", "found"), ("user", "u2"),
    ]  # fmt: skip


def test_of_two_results_the_newest_is_kept_and_one_without_an_id_goes() -> None:
    rows = history(
        ("user", "u"), ("assistant", "", ["x"]), ("tool", "old", "x"), ("tool", "new", "x"), ("tool", "none")
    )
    assert shape(replayed(rows, ROOMY).messages) == [("user", "u"), ("assistant", ""), ("tool", "new")]


def test_an_empty_answer_that_was_stored_is_not_replayed() -> None:
    rows = history(("user", "u1"), ("assistant", None), ("assistant", "  "), ("user", "u2"))
    assert shape(replayed(rows, ROOMY).messages) == [("user", "u1\n\nu2")]


def test_neighbours_of_one_role_are_joined_and_no_text_is_lost() -> None:
    rows = history(("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d"), ("user", "e"))
    assert shape(joined(rows)) == [("user", "a\n\nb"), ("assistant", "c\n\nd"), ("user", "e")]


def test_the_window_ends_at_a_question() -> None:
    rows = history(("user", "u" * 46), ("assistant", "a" * 46), ("user", "v" * 46), ("assistant", "b" * 46))
    assert [message.seq for message in replayed(rows, 120).messages] == [3, 4]
    assert [message.seq for message in replayed(rows, 200).messages] == [1, 2, 3, 4]


@pytest.mark.parametrize("budget", range(20, 900, 7))
def test_every_budget_cuts_a_long_tool_turn_at_a_legal_place(budget: int) -> None:
    rounds = [entry for n in range(60) for entry in (("assistant", "…", [f"c{n}"]), ("tool", "found", f"c{n}"))]
    replay = replayed(history(("user", "go"), *rounds), budget)  # type: ignore[arg-type]
    assert is_legal(replay.messages)
    assert replay.messages[0].text == "go"
    assert replay.tokens <= budget


def test_an_oversized_message_is_cut_in_the_middle_and_says_so() -> None:
    rows = [row(Role.USER, "begin " + "x" * 300_000 + " end", 1)]
    replay = replayed(rows, 1000)
    text = replay.messages[0].text
    assert text.startswith("begin ")
    assert text.endswith(" end")
    assert "characters left out" in text
    assert len(text) < 4000


@pytest.mark.parametrize("text", ["短い" * 20_000, "x" * 90_000, "word " * 20_000, "🙂" * 20_000])
@pytest.mark.parametrize("budget", [200, 1000, 3000])
def test_a_cut_message_fits_the_budget_in_any_script(text: str, budget: int) -> None:
    count = O200kCounter()
    asked = Message(role=Role.USER, content=text, seq=1, tokens=count(text) + 4)
    (sent,) = replayed([asked], budget).messages
    assert count(sent.text) + 4 <= budget
    assert "characters left out" in sent.text


def test_joining_loses_no_picture_and_touches_no_thinking() -> None:
    picture = {"type": "image_url", "image_url": {"url": "x"}}
    first = Message(role=Role.USER, content="look", seq=1)
    second = Message(role=Role.USER, content=[picture], seq=2)
    (user,) = joined([first, second])
    assert user.content == [{"type": "text", "text": "look"}, picture]
    thought = [Message(role=Role.ASSISTANT, content=str(n), seq=n, reasoning_content="hm") for n in (1, 2)]
    assert joined(thought) == thought


def test_hidden_rows_are_left_out_with_their_reason() -> None:
    hidden = Message(role=Role.USER, content="/new", kind=Kind.COMMAND, seq=2, tokens=1)
    marked = Message(role=Role.USER, content="oops", seq=3, tokens=1, marks=frozenset({Mark.UNDONE}))
    replay = replayed([row(Role.USER, "u", 1), hidden, marked], ROOMY)
    assert shape(replay.messages) == [("user", "u")]
    assert {left.seq: left.reason for left in replay.left_out} == {
        2: "of the kind command, not for the model",
        3: "marked undone",
    }


def test_the_bots_last_words_before_the_newest_question_stay_where_they_fit() -> None:
    rows = history(("user", "u" * 46), ("assistant", "shall I?" + "a" * 38), ("user", "yes" + "v" * 43))
    enough = 100 + OPENING_TOKENS
    assert [message.seq for message in replayed(rows, enough).messages][1:] == [2, 3]
    assert [message.seq for message in replayed(rows, enough - 1).messages] == [3]
    assert is_legal(replayed(rows, enough).messages)
