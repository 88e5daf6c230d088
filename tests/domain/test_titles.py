"""Titles, previews and labels: what a session is called in a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import Refused
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.origins import Origin, origin_label
from gateway.domain.sanitize import without_thinking
from gateway.domain.scrub import for_model, report
from gateway.domain.titles import edited_title, first_line_title, generated_title, preview, preview_text


def row(role: Role, text: str, kind: Kind = Kind.CHAT, mark: Mark | None = None) -> Message:
    return Message(role=role, content=text, kind=kind, marks=frozenset({mark} if mark else ()))


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  Trip\n to   Rome ", "Trip to Rome"),
        ("x" * 200, "x" * 120),
    ],
)
def test_an_edited_title_is_one_line_of_bounded_length(text: str, title: str) -> None:
    assert edited_title(text) == title


def test_a_blank_title_is_refused() -> None:
    with pytest.raises(Refused, match="expected a title"):
        edited_title(" \n ")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("\n\n  Plan my trip \nto Rome", "Plan my trip"),
        ("[image: /srv/x.png]\nWhat is this?", "What is this?"),
        ("y" * 90, "y" * 60),
        ("", ""),
    ],
)
def test_a_first_line_titles_a_session(text: str, title: str) -> None:
    assert first_line_title(text) == title


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('"Trip to Rome."', "Trip to Rome"),
        ("<think>hm</think>«Reise nach Rom»", "Reise nach Rom"),
        ("Casino topics", "Casino topics"),
        ("NO TOPIC", None),
        ("no topic.", None),
        ("z" * 81, None),
        ("  ", None),
        ("<think>never closed", None),
    ],
)
def test_a_models_answer_titles_a_session_or_does_not(answer: str, title: str | None) -> None:
    assert generated_title(answer) == title


def test_a_preview_is_the_first_words_of_a_person() -> None:
    rows = [
        row(Role.USER, "/new", Kind.COMMAND),
        row(Role.ASSISTANT, "Good morning"),
        row(Role.USER, "forget this", mark=Mark.DELETED),
        row(Role.USER, "Plan my\n trip"),
    ]
    assert preview(rows) == "Plan my trip"
    assert preview(rows[:3]) == "Good morning"
    assert preview([]) == ""


def test_a_preview_of_an_announcement_shows_no_scaffolding() -> None:
    text = "[Subagent 'Phase1' failed]\n\nTask: secret task\n\nResult:\ngh is missing.\n\nSummarize this naturally for"
    assert preview([row(Role.ASSISTANT, text, Kind.ANNOUNCEMENT)]) == "[Subagent 'Phase1' failed] gh is missing."


@given(st.text(max_size=400))
def test_a_preview_is_short_and_on_one_line(text: str) -> None:
    shown = preview_text(text)
    assert len(shown) <= 120
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "[Subagent 'P' failed]\n\nTask: …\n\nResult:\nmissing.\n\nSummarize this naturally…",
            "[Subagent 'P' failed]\n\nmissing.",
        ),
        ("nothing special", "nothing special"),
        ("[Subagent 'P' completed]\nno result here", "[Subagent 'P' completed]"),
        ("Result: inline", "Result: inline"),
        ("x\nresult: inline value", "inline value"),
        ("x\nResult:\n" + "y" * 900, "y" * 799 + "…"),
    ],
)
def test_an_announcement_in_the_old_text_form_is_scrubbed(text: str, shown: str) -> None:
    assert report(text) == shown


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("[Message Time: 2026-11-30]\nhello", "hello"),
        ("before\n[image: /srv/a.png]\nafter", "before\nafter"),
        ("[image: label]\nstays", "[image: label]\nstays"),
        ('message("hi")\ntext', "text"),
        ('```py\nmessage("x")\n    indented\n```', '```py\nmessage("x")\n    indented\n```'),
        ("~~~\n[image: /a]\n```\nmessage(1)\n~~~\nmessage(2)", "~~~\n[image: /a]\n```\nmessage(1)\n~~~"),
    ],
)
def test_echoes_of_our_framing_are_removed_outside_code_only(text: str, left: str) -> None:
    assert for_model(text) == left


@given(st.text(alphabet="ab`~\n[]image:/()mes ", max_size=120))
def test_sanitizing_twice_is_sanitizing_once(text: str) -> None:
    once = for_model(text)
    assert for_model(once) == once


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("a<think>b</thinking>c", "a<think>b</thinking>c"),
        ("</think> x </think>", "x"),
        ("use <th>", "use <th>"),
        ("<THINK>a</THINK>b", "<THINK>a</THINK>b"),
    ],
)
def test_inline_thinking_is_taken_out_of_finished_text(text: str, left: str) -> None:
    assert without_thinking(text) == left


@pytest.mark.parametrize(
    ("origin", "label"),
    [
        (Origin(kind="slack", tenant="T0ABCD", chat_id="C1", chat_name="general"), "#general · T0ABCD"),
        (Origin(kind="slack", tenant="T0ABCD", chat_id="C1"), "#C1 · T0ABCD"),
        (Origin(kind="slack", chat_id="D1", actor="U1"), "@U1"),
        (Origin(kind="telegram", chat_id="-100", chat_name="Family chat"), "Family chat"),
        (Origin(kind="telegram", chat_id="7", label="@alice"), "@alice"),
        (Origin(kind="github", chat_name="acme/api", thread="42"), "acme/api#42"),
        (Origin(kind="schedule"), "schedule"),
    ],
)
def test_an_origin_is_labelled_as_people_know_it(origin: Origin, label: str) -> None:
    assert origin_label(origin) == label
