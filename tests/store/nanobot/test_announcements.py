"""The text in which nanobot's subagents announce what they did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.announce import Announcement, parse_announcement

CLOSING = "Summarize this naturally for the user. Keep it brief."


def announced(label: str, status: str, task: str, result: str) -> str:
    return f"[Subagent '{label}' {status}]\n\nTask: {task}\n\nResult:\n{result}\n\n{CLOSING}\n"


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        (announced("Phase1", "failed", "Look.", "gh CLI missing."), ("Phase1", "failed", "Look.", "gh CLI missing.")),
        (
            announced("it's", "completed successfully", "a\nb", "c\n\nd"),
            ("it's", "completed successfully", "a\nb", "c\n\nd"),
        ),
        (announced("x", "failed", "Say\n\nResult:\nno", "yes"), ("x", "failed", "Say\n\nResult:\nno", "yes")),
        (announced("x", "failed", "t", "a\nResult: b"), ("x", "failed", "t", "a\nResult: b")),
        (announced("x", "failed", "t", f"He said: {CLOSING}"), ("x", "failed", "t", f"He said: {CLOSING}")),
        (announced("x", "failed", "t", "r") + "\n2 tasks still run.", ("x", "failed", "t", "r")),
        (announced("x", "failed", "t", "r").replace("\n", "\r\n"), ("x", "failed", "t", "r")),
        (announced("x", "failed", "t", ""), ("x", "failed", "t", "")),
        ("[Subagent 'x' failed]", ("x", "failed", "", "")),
        ("[Subagent 'x' failed]\nTask: t\nresult: inline", ("x", "failed", "t", "inline")),
        ("[Subagent 'x' failed]\n\nonly words", ("x", "failed", "only words", "")),
    ],
)
def test_the_fields_of_an_announcement_are_found(text: str, fields: tuple[str, str, str, str]) -> None:
    label, status, task, result = fields
    assert parse_announcement(text) == Announcement(label=label, status=status, task=task, result=result)


@pytest.mark.parametrize("text", ["", "Result: x", "see [Subagent 'x' failed]", "[Subagent x failed]", "[Subagent 'x'"])
def test_other_text_is_no_announcement(text: str) -> None:
    assert parse_announcement(text) is None


@given(st.text(), st.text())
def test_a_task_never_shows_up_as_a_result(task: str, result: str) -> None:
    told = parse_announcement(announced("x", "failed", f"SECRET {task}", result))
    assert told is not None
    assert "SECRET" not in told.result
