"""What the model is sent: legal whatever is stored, within the budget, with the newest question."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.legality import INTERRUPTED, WITHOUT_TEXT, joined, legalise
from gateway.domain.message import Kind, Mark, Message, Role, ToolCall
from gateway.domain.replay import build
from gateway.tokens.o200k import O200kCounter

ROOMY = 10**9


def row(role: Role, text: str | None, seq: int, *, calls: Sequence[str] = (), answers: str | None = None) -> Message:
    return Message(
        role=role,
        content=text,
        seq=seq,
        tool_calls=tuple(ToolCall(id=id, name="look", arguments="{}") for id in calls),
        tool_call_id=answers,
        tokens=4 + len(text or ""),
    )


def history(*entries: tuple[str, str | None] | tuple[str, str | None, object]) -> list[Message]:
    """Build rows from ("user", text), ("assistant", text, [call ids]) and ("tool", text, id)."""
    rows = []
    for seq, (role, text, *more) in enumerate(entries, start=1):
        extra: object = more[0] if more else None
        calls = extra if isinstance(extra, list) else []
        rows.append(row(Role(role), text, seq, calls=calls, answers=extra if isinstance(extra, str) else None))
    return rows


def shape(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role.value, message.text) for message in messages]


def is_legal(messages: Sequence[Message]) -> bool:
    """Judge a history by the rules of strict providers, written apart from the code that is judged."""
    if messages and messages[0].role is not Role.USER:
        return False
    place = 0
    while place < len(messages):
        message = messages[place]
        if message.role not in (Role.USER, Role.ASSISTANT):
            return False
        if message.role is Role.USER and (message.tool_calls or not message.text.strip()):
            return False
        place += 1
        if message.role is not Role.ASSISTANT:
            continue
        if not message.tool_calls and not message.text.strip():
            return False
        wanted = [call.id for call in message.tool_calls]
        if any(not isinstance(json.loads(call.arguments), dict) for call in message.tool_calls):
            return False
        got = [answer.tool_call_id for answer in messages[place : place + len(wanted)] if answer.role is Role.TOOL]
        if len(set(wanted)) != len(wanted) or sorted(map(str, got)) != sorted(wanted):
            return False
        place += len(wanted)
    return True


ids = st.sampled_from(["a", "b", "c", ""])
calls = st.builds(
    ToolCall, id=ids, name=st.sampled_from(["look", ""]), arguments=st.sampled_from(["{}", "[1]", "{", "", "null"])
)
stored = st.builds(
    Message,
    role=st.sampled_from(Role),
    kind=st.sampled_from(Kind),
    content=st.none() | st.text(max_size=30) | st.just([{"type": "text", "text": "block"}]),
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    tool_call_id=st.none() | ids,
    tokens=st.integers(0, 60),
    marks=st.sampled_from([frozenset(), frozenset(), frozenset({Mark.DELETED})]),
)
histories = st.lists(stored, max_size=25).map(
    lambda rows: [Message(**{**{f: getattr(r, f) for f in r.__slots__}, "seq": n}) for n, r in enumerate(rows, 1)]
)


@given(histories, st.integers(1, 400))
@settings(max_examples=400)
def test_whatever_is_stored_the_replay_is_legal(rows: list[Message], budget: int) -> None:
    replay = build(rows, budget=budget)
    assert is_legal(replay.messages)
    assert legalise(replay.messages).messages == replay.messages


@given(histories, st.integers(1, 400))
@settings(max_examples=400)
def test_the_newest_question_is_there_and_the_budget_is_kept(rows: list[Message], budget: int) -> None:
    asked = [r for r in rows if r.role is Role.USER and not r.marks and r.kind not in (Kind.COMMAND, Kind.NOTICE)]
    replay = build(rows, budget=budget)
    if asked:
        newest = [message for message in replay.messages if message.role is Role.USER][-1]
        words = asked[-1].text
        # A blank one is replaced by words that say so; of an oversized one at least both ends are there.
        assert newest.text.endswith(words[-10:] if words.strip() else WITHOUT_TEXT)
    assert replay.tokens <= max(budget, max((r.tokens or 0 for r in asked), default=0), 16 * 3)


@given(histories)
def test_every_row_is_sent_or_left_out_with_a_reason(rows: list[Message]) -> None:
    replay = build(rows, budget=ROOMY)
    explained = {left.seq for left in replay.left_out}
    words = "\n".join(message.text for message in replay.messages)
    for r in rows:
        assert r.seq in explained or not r.text.strip() or r.text in words
    assert all(left.reason for left in replay.left_out)


def test_a_stray_result_costs_only_itself() -> None:
    rows = history(("user", "u1"), ("assistant", "a1"), ("user", "u2"), ("tool", "stray", "x"), ("user", "u3"))
    assert shape(build(rows, budget=ROOMY).messages) == [("user", "u1"), ("assistant", "a1"), ("user", "u2\n\nu3")]


def test_a_call_that_was_never_answered_gets_a_result_that_says_so() -> None:
    rows = history(("user", "u1"), ("assistant", None, ["x"]), ("user", "hello?"))
    assert shape(build(rows, budget=ROOMY).messages)[2] == ("tool", INTERRUPTED)


def test_a_late_result_moves_to_its_call() -> None:
    rows = history(("user", "u1"), ("assistant", "", ["x"]), ("user", "u2"), ("tool", "found", "x"))
    assert shape(build(rows, budget=ROOMY).messages) == [
        ("user", "u1"), ("assistant", ""), ("tool", "found"), ("user", "u2"),
    ]  # fmt: skip


def test_of_two_results_the_newest_is_kept_and_one_without_an_id_goes() -> None:
    rows = history(
        ("user", "u"), ("assistant", "", ["x"]), ("tool", "old", "x"), ("tool", "new", "x"), ("tool", "none")
    )
    assert shape(build(rows, budget=ROOMY).messages) == [("user", "u"), ("assistant", ""), ("tool", "new")]


def test_an_empty_answer_that_was_stored_is_not_replayed() -> None:
    rows = history(("user", "u1"), ("assistant", None), ("assistant", "  "), ("user", "u2"))
    assert shape(build(rows, budget=ROOMY).messages) == [("user", "u1\n\nu2")]


def test_neighbours_of_one_role_are_joined_and_no_text_is_lost() -> None:
    rows = history(("user", "a"), ("user", "b"), ("assistant", "c"), ("assistant", "d"), ("user", "e"))
    assert shape(joined(rows)) == [("user", "a\n\nb"), ("assistant", "c\n\nd"), ("user", "e")]


def test_the_window_ends_at_a_question() -> None:
    rows = history(("user", "u" * 46), ("assistant", "a" * 46), ("user", "v" * 46), ("assistant", "b" * 46))
    assert [message.seq for message in build(rows, budget=120).messages] == [3, 4]
    assert [message.seq for message in build(rows, budget=199).messages] == [3, 4]
    assert [message.seq for message in build(rows, budget=200).messages] == [1, 2, 3, 4]


@pytest.mark.parametrize("budget", range(20, 900, 7))
def test_every_budget_cuts_a_long_tool_turn_at_a_legal_place(budget: int) -> None:
    rounds = [entry for n in range(60) for entry in (("assistant", "…", [f"c{n}"]), ("tool", "found", f"c{n}"))]
    replay = build(history(("user", "go"), *rounds), budget=budget)  # type: ignore[arg-type]
    assert is_legal(replay.messages)
    assert replay.messages[0].text == "go"
    assert replay.tokens <= budget


def test_an_oversized_message_is_cut_in_the_middle_and_says_so() -> None:
    rows = [row(Role.USER, "begin " + "x" * 300_000 + " end", 1)]
    replay = build(rows, budget=1000)
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
    (sent,) = build([asked], budget=budget).messages
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
    replay = build([row(Role.USER, "u", 1), hidden, marked], budget=ROOMY)
    assert shape(replay.messages) == [("user", "u")]
    assert {left.seq: left.reason for left in replay.left_out} == {
        2: "a command is not for the model",
        3: "marked undone",
    }
