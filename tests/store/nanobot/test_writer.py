"""What we write for nanobot, name by name, and what is told of what it cannot hold."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.nanobot.writer import nanobot_file
from tests.store.nanobot.written import (
    HEADER,
    NOON,
    exported,
    path_of,
    read_rows,
    row,
    strictly_read,
)


def test_the_file_is_named_by_its_key() -> None:
    name = exported().name
    assert name.endswith(".jsonl")
    assert "=" not in name
    assert base64.urlsafe_b64decode(name.removesuffix(".jsonl") + "==") == b"slack:D1"


def test_times_are_those_of_the_clock_on_nanobots_wall() -> None:
    file = nanobot_file(SessionCopy(session=HEADER), zone=ZoneInfo("Europe/Berlin"), path_of=path_of)
    assert strictly_read(file.lines)[0]["created_at"] == "2026-11-30T13:00:00"


def test_a_row_has_openais_shape_with_nanobots_names() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"a":1}')
    answer = row(2, role=Role.TOOL, content="seen", tool_call_id="c1", name="look")
    assert read_rows(row(role=Role.ASSISTANT, content=None, tool_calls=(call,)), answer) == [
        {
            "role": "assistant",
            "content": None,
            "timestamp": "2026-11-30T12:00:00",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}],
        },
        {
            "role": "tool",
            "content": "seen",
            "timestamp": "2026-11-30T12:00:00",
            "tool_call_id": "c1",
            "name": "look",
        },
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": Kind.COMMAND}, {"_command": True}),
        ({"kind": Kind.DELIVERY, "role": Role.ASSISTANT}, {"_channel_delivery": True}),
        ({"kind": Kind.ANNOUNCEMENT}, {"role": "user", "injected_event": "subagent_result"}),
        ({"kind": Kind.ANNOUNCEMENT, "extra": {"role": "assistant"}}, {"role": "assistant"}),
        ({"kind": Kind.ANNOUNCEMENT, "extra": {"_hidden_history": True}}, {"_hidden_history": True}),
        ({"media": (MediaRef(ref="m", kind="image", name="cat.png"),)}, {"media": ["/kept/cat.png"]}),
        (
            {"attachments": (Attachment(kind="CLI App", name="git", details={"entry_point": "/g", "tool": "t"}),)},
            {"cli_apps": [{"name": "git", "entry_point": "/g"}]},
        ),
        (
            {"runtime_context": "It is noon."},
            {
                "content": "hi\n\nIt is noon.",
                "_runtime_context": {"version": 1, "sources": [], "suffix": "It is noon."},
            },
        ),
        ({"extra": {"cron_job_id": "j", "content": "odd", "_type": "metadata"}}, {"cron_job_id": "j", "content": "hi"}),
    ],
)
def test_what_is_special_about_a_row_goes_by_nanobots_name(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    (read,) = read_rows(row(**fields))
    assert {name: read.get(name) for name in expected} == expected
    assert "injected_event" in expected or "role" in expected or "injected_event" not in read


def test_a_row_says_nothing_of_what_it_has_not() -> None:
    assert read_rows(row()) == [{"role": "user", "content": "hi", "timestamp": "2026-11-30T12:00:00"}]


def test_a_title_that_is_a_first_line_is_left_to_nanobot() -> None:
    def metadata(source: TitleSource) -> Any:
        session = replace(HEADER, title="Cats", title_source=source)
        return strictly_read(exported(session=session).lines)[0]["metadata"]

    assert metadata(TitleSource.FIRST_LINE) == {}
    assert metadata(TitleSource.GENERATED) == {"title": "Cats", "title_user_edited": False}
    assert metadata(TitleSource.EDITED) == {"title": "Cats", "title_user_edited": True}


@pytest.mark.parametrize(
    ("before", "summary", "after"),
    [
        ({}, "new", {"text": "new", "last_active": "2026-11-30T11:00:00"}),
        ({"_last_summary": {"text": "old"}}, "new", {"text": "new", "last_active": "2026-11-30T11:00:00"}),
        ({"_last_summary": {"text": "new", "x": 1}}, "new", {"text": "new", "x": 1}),
        ({"_last_summary": {"text": "old"}}, "", None),
    ],
)
def test_the_summary_is_the_one_that_holds_now(before: dict[str, Any], summary: str, after: dict[str, Any]) -> None:
    state = {"summary_text": summary, "created_at": "2026-11-30T12:00:00+01:00"}
    session = replace(HEADER, metadata=before, compaction=state)
    assert strictly_read(exported(session=session).lines)[0]["metadata"].get("_last_summary") == after


def test_everything_that_is_lost_is_told() -> None:
    session = replace(
        HEADER,
        closed_at=NOON,
        pinned=True,
        archived=True,
        workspace="/w",
        grants={"shell": True},
        origin=Origin(kind="slack"),
        parent_id="p",
        replay_from=5,
        compaction={"summary_text": "s", "working_state": {"files": ["a"]}},
    )
    file = exported(
        row(1, marks=frozenset({Mark.DELETED})),
        row(2, kind=Kind.NOTICE),
        row(3, kind=Kind.INTERRUPTED),
        row(4, role=Role.TOOL, tool_call_id="gone"),
        row(5, media=(MediaRef(ref="", kind="image", name="cat.png"),), sender=Sender(id="U1", name="Ann")),
        row(6, attachments=(Attachment(kind="Poll", name="p"),), event_id="e", extra={"media": 1}),
        session=session,
        attic=[Retired(row=row(9), reason="cleared", moved_at=NOON)],
    )
    assert len(strictly_read(file.lines)[1]) == 2
    assert [loss.told(count) for loss, count in file.losses.items()] == [
        "1 session is closed, of which nanobot knows nothing.",
        "1 session is pinned, of which nanobot knows nothing.",
        "1 session is archived, of which nanobot knows nothing.",
        "1 session is written without workspace, agent, model or mode.",
        "1 session is written without what it may touch besides its workspace.",
        "1 session is written without where it came from, but for its key.",
        "1 session is written without the session it was made from.",
        "1 session is written without where its replay begins.",
        "1 session is written without what was kept besides the summary of its earlier rows.",
        "1 row is hidden, which nanobot would send to a model; left out.",
        "2 notices and marks of interruption or compaction are left out.",
        "1 result of a tool without its call is left out.",
        "1 row of the attic is left out.",
        "1 file lies nowhere that nanobot could read it; left out.",
        "1 attachment of a kind that nanobot does not know is left out.",
        "1 fact goes by a name that has another meaning in nanobot; left out.",
        "1 message is kept with the id of its sender and without the name.",
        "1 row is kept without its turn, event, provider or model.",
    ]


def test_nothing_is_told_where_nothing_is_lost() -> None:
    assert exported(row(), row(2, role=Role.ASSISTANT, content="hello")).losses == {}
