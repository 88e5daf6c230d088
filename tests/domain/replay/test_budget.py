"""The budget: what is kept when not all fits, and that one large row does not push the rest out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.message import Kind, Message, Role
from gateway.domain.replay.oversize import shortened
from gateway.domain.replay.window import most_messages
from tests.domain.replay.rows import ROOMY, history, is_legal, letters, replayed, row, shape


def sized(*entries: tuple[str, int]) -> list[Message]:
    """Return rows of ("user", tokens), named u1, a1, u2 …"""
    counts = {"user": 0, "assistant": 0}
    rows = []
    for seq, (role, tokens) in enumerate(entries, start=1):
        counts[role] += 1
        name = f"{role[0]}{counts[role]} "
        rows.append(row(Role(role), name + "x" * (tokens - 4 - len(name)), seq))
    return rows


def names(messages: object) -> list[str]:
    return [message.text.split(" ")[0] for message in messages]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (120, ["u3", "a3"]),
        (300, ["u1", "a1", "u2", "a2", "u3", "a3"]),
        (260, ["a2", "u3", "a3"]),
        (299, ["u2", "a2", "u3", "a3"]),
    ],
)
def test_the_newest_turns_that_fit_are_kept(budget: int, kept: list[str]) -> None:
    rows = sized(*[("user", 50), ("assistant", 50)] * 3)
    sent = replayed(rows, budget)
    assert [name for name in names(sent.messages) if name[0] in "ua"] == kept


def test_a_budget_smaller_than_the_newest_turn_still_holds_its_question() -> None:
    sent = replayed(sized(("user", 100), ("assistant", 100), ("user", 100), ("assistant", 100)), 100)
    assert names(sent.messages)[0] == "u2"
    assert sent.tokens <= 100


def test_a_proactive_delivery_that_the_person_answered_is_kept_with_any_budget() -> None:
    said = Message(role=Role.ASSISTANT, kind=Kind.DELIVERY, content="the build broke", seq=1, tokens=19)
    asked = row(Role.USER, "ok", 2)
    for budget in (ROOMY, 60):
        assert [message.text for message in replayed([said, asked], budget).messages][-2:] == ["the build broke", "ok"]
        assert is_legal(replayed([said, asked], budget).messages)


def test_after_a_cut_too_the_history_begins_at_the_delivery_that_was_answered() -> None:
    said = Message(role=Role.ASSISTANT, kind=Kind.DELIVERY, content="the build broke", seq=3, tokens=19)
    rows = [*sized(("user", 200), ("assistant", 200)), said, row(Role.USER, "fix it", 4)]
    assert [message.text for message in replayed(rows, 120).messages][-2:] == ["the build broke", "fix it"]


def test_one_question_and_eighty_messages_of_tools_over_the_budget_still_make_progress() -> None:
    rounds = [entry for n in range(40) for entry in (("assistant", "…", [f"c{n}"]), ("tool", "found it", f"c{n}"))]
    sent = replayed(history(("user", "go"), *rounds), 100)  # type: ignore[arg-type]
    assert is_legal(sent.messages)
    assert names(sent.messages)[0] == "go"
    assert sent.messages[-1].tool_call_id == "c39-80"


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_one_huge_message_is_cut_and_the_others_stay(role: Role) -> None:
    rows = [row(Role.USER, "first", 1), row(Role.ASSISTANT, "ok", 2), row(role, "huge " + "x" * 300_000 + " end", 3)]
    rows.append(row(Role.USER, "and now?", 4))
    sent = replayed(rows, 4_000)
    text = "\n".join(message.text for message in sent.messages)
    assert "characters left out" in text
    assert "huge " in text
    assert " end" in text
    assert text.endswith("and now?")
    assert sent.tokens <= 4_000


def test_a_tool_result_larger_than_the_budget_is_cut_and_not_lost() -> None:
    rows = history(("user", "go"), ("assistant", "", ["x"]), ("tool", "begin " + "y" * 300_000 + " end", "x"))
    sent = replayed(rows, 1_000)
    assert [message.role for message in sent.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert sent.messages[2].text.startswith("begin ")
    assert sent.messages[2].text.endswith(" end")
    assert sent.tokens <= 1_000


def test_several_results_larger_than_the_budget_share_it() -> None:
    rows = history(
        ("user", "go"), ("assistant", "", ["x", "y"]), ("tool", "1" * 9_000, "x"), ("tool", "2" * 9_000, "y")
    )
    sent = replayed(rows, 1_000)
    assert [message.text[0] for message in sent.messages if message.role is Role.TOOL] == ["1", "2"]
    assert sent.tokens <= 1_000


@given(st.text(min_size=1, max_size=400), st.integers(1, 400))
def test_a_shortened_row_keeps_both_its_ends_and_never_more_than_it_was(text: str, most: int) -> None:
    before = row(Role.USER, text, 1)
    after = shortened(before, most, letters)
    assert after.text[:5] == text[:5] or len(text) < 5
    assert after.text.endswith(text[-5:]) or after.text == text
    assert after.tokens is not None
    assert after is before or after.tokens <= max(most, 2 * 20 + 64 + 60)


@pytest.mark.parametrize(("window", "most"), [(8_000, 120), (32_768, 327), (200_000, 2_000), (None, 2_000), (0, 2_000)])
def test_a_window_stands_for_a_number_of_messages(window: int | None, most: int) -> None:
    assert most_messages(window) == most


def test_a_number_of_messages_bounds_a_replay_and_begins_at_a_question() -> None:
    rows = history(("user", "u1"), ("assistant", "a1"), ("user", "u2"), ("assistant", "a2"), ("assistant", "a3"))
    assert shape(replayed(rows, most_messages=4).messages)[0] == ("user", "u2")
    assert {left.seq for left in replayed(rows, most_messages=4).left_out} == {1, 2}


def test_where_no_question_is_among_the_newest_it_is_gone_back_to_if_that_is_wished() -> None:
    rows = history(("user", "u1"), *[("assistant", f"a{n}") for n in range(6)])
    assert shape(replayed(rows, most_messages=3, extend_to_user=True).messages)[0] == ("user", "u1")
