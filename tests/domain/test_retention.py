"""Shortening a session: what stays may begin a history, and the summary's cursor keeps its meaning."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.message import Message, Role, ToolCall
from gateway.domain.retention import recent_legal_suffix


def rows(shape: str) -> list[Message]:
    """Build rows from letters: u user, a assistant, c a call, r its result."""
    made = []
    for seq, letter in enumerate(shape, start=1):
        role = {"u": Role.USER, "a": Role.ASSISTANT, "c": Role.ASSISTANT, "r": Role.TOOL}[letter]
        calls = (ToolCall(id=str(seq), name="look", arguments="{}"),) if letter == "c" else ()
        made.append(Message(role=role, content=letter, seq=seq, tool_calls=calls, tool_call_id=str(seq - 1)))
    return made


def seqs(found: object) -> list[int]:
    return [row.seq for row in found]  # type: ignore[attr-defined]


def test_without_a_question_in_the_tail_the_latest_one_and_what_followed_are_kept() -> None:
    result = recent_legal_suffix(rows("u" * 10 + "a" * 10), 4, consolidated_through=12)
    assert seqs(result.kept) == [10, 11, 12, 13]
    assert result.already_consolidated == 9


def test_a_tail_of_questions_is_kept_as_it_is() -> None:
    result = recent_legal_suffix(rows("u" * 10), 4, consolidated_through=7)
    assert seqs(result.kept) == [7, 8, 9, 10]
    assert sum(seq <= 7 for seq in seqs(result.kept)) == 1


def test_keeping_nothing_drops_everything() -> None:
    result = recent_legal_suffix(rows("u" * 10), 0, consolidated_through=3)
    assert (seqs(result.kept), len(result.dropped), result.already_consolidated) == ([], 10, 3)


def test_a_tail_begins_at_its_first_question() -> None:
    assert seqs(recent_legal_suffix(rows("uacrauacr"), 5, consolidated_through=0).kept) == [6, 7, 8, 9]


def test_extending_goes_back_to_a_question() -> None:
    result = recent_legal_suffix(rows("uaucrcrcr"), 3, consolidated_through=0, extend_to_user=True)
    assert seqs(result.kept) == [3, 4, 5, 6, 7, 8, 9]


@given(st.text(alphabet="uacr", max_size=40), st.integers(0, 45), st.integers(0, 40), st.booleans())
def test_what_is_kept_and_dropped_is_all_there_was_and_no_result_is_parted(
    shape: str, most: int, cursor: int, extend: bool
) -> None:
    history = rows(shape)
    result = recent_legal_suffix(history, most, consolidated_through=cursor, extend_to_user=extend)
    assert sorted(seqs(result.kept) + seqs(result.dropped)) == seqs(history)
    called = {call.id for row in result.kept for call in row.tool_calls}
    assert all(row.tool_call_id in called for row in result.kept if row.role is Role.TOOL)
    assert extend or len(result.kept) <= max(most, 0) or len(history) <= most
    assert result.already_consolidated == sum(row.seq <= cursor for row in result.dropped)
