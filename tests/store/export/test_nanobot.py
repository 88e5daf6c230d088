"""What we write for nanobot: it can read it, and an import of it gives back what its format can hold."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.compaction import CompactionState
from gateway.domain.keys import SessionKey
from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.sanitize import without_thinking
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.export.nanobot import NanobotFile, nanobot_file
from gateway.store.importers.nanobot import NanobotSource
from tests.store.export.strategies import built, copies, leaves, moments, texts, unhurried, words

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
HEADER = Session(id="s1", key=SessionKey("slack", "D1"), created_at=NOON, updated_at=NOON)
ZONES = [UTC, timezone(-timedelta(hours=5)), timezone(timedelta(hours=5, minutes=45))]


def strictly_read(lines: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a file as nanobot does, by its rules stated again: a single fault and the file counts as corrupt."""
    values = [json.loads(line) for line in "".join(lines).split("\n") if line.strip()]
    head, rows = values[0], values[1:]
    assert head["_type"] == "metadata"
    assert isinstance(head["metadata"], dict)
    assert isinstance(head["key"], str)
    for row in rows:
        assert row.get("_type") != "metadata"
        assert isinstance(row["role"], str)
        assert row["content"] is None or isinstance(row["content"], str | list)
    for text in (head["created_at"], head["updated_at"], *(row["timestamp"] for row in rows)):
        assert datetime.fromisoformat(text).tzinfo is None
    assert type(head["last_consolidated"]) is int
    assert 0 <= head["last_consolidated"] <= len(rows)
    return head, rows


def rows_it_would_forget(rows: Sequence[Mapping[str, Any]]) -> int:
    """Count the rows nanobot drops because a tool's result further on has no call before it."""
    start, declared = 0, set()
    for place, row in enumerate(rows):
        if row["role"] == "assistant":
            declared |= {str(call["id"]) for call in row.get("tool_calls") or [] if call.get("id")}
        if row["role"] == "tool" and row.get("tool_call_id") and str(row["tool_call_id"]) not in declared:
            start, declared = place + 1, set()
    return start


def without_context(row: Mapping[str, Any]) -> Any:
    """Take the runtime context off a row's content, as nanobot does before people see it."""
    content, marker = row["content"], row.get("_runtime_context")
    if not isinstance(marker, dict) or marker.get("version") != 1:
        return content
    if isinstance(content, str):
        suffix = marker["suffix"]
        return "" if content == suffix else content.removesuffix(f"\n\n{suffix}")
    count = len(marker["blocks"])
    return content[:-count] if content[-count:] == marker["blocks"] else content


def path_of(file: MediaRef) -> str | None:
    return f"/kept/{file.name}" if file.ref else None


def exported(*rows: Message, session: Session = HEADER, attic: Sequence[Retired] = ()) -> NanobotFile:
    copy = SessionCopy(session=session, rows=rows, attic=attic)
    return nanobot_file(copy, zone=UTC, path_of=path_of)


def read_rows(*rows: Message) -> list[dict[str, Any]]:
    return strictly_read(exported(*rows).lines)[1]


def row(seq: int = 1, **fields: Any) -> Message:
    return Message(**{"role": Role.USER, "content": "hi", "seq": seq, "created_at": NOON, **fields})


# What a session of nanobot's can hold at all, beside what it cannot.
ids = st.sampled_from(["c1", "c2"])
apps = st.builds(
    lambda name, entry: Attachment(
        kind="CLI App", name=name, details={"tool": "run_cli_app", "entry_point": entry, "skill": "s"}
    ),
    st.sampled_from(["git", "a b"]),
    st.sampled_from(["/bin/git", "unknown"]),
)
sendable = built(
    Message,
    {
        "role": st.sampled_from(Role),
        "content": st.none() | words | st.lists(st.builds(lambda text: {"type": "text", "text": text}, words)),
        "created_at": moments,
    },
    kind=st.sampled_from(Kind),
    tool_calls=st.lists(st.builds(ToolCall, id=ids, name=st.just("look"), arguments=texts), max_size=2).map(tuple),
    tool_call_id=ids | st.just(""),
    name=texts,
    reasoning_content=texts,
    thinking_blocks=st.lists(st.dictionaries(texts, leaves, max_size=2), max_size=2).map(tuple),
    turn_id=texts,
    sender=st.builds(Sender, id=texts, name=texts),
    media=st.lists(
        st.builds(MediaRef, ref=st.sampled_from(["", "m"]), kind=st.just("image"), name=st.just("cat.png")), max_size=2
    ).map(tuple),
    attachments=st.lists(apps | st.just(Attachment(kind="Poll", name="x")), max_size=2).map(tuple),
    runtime_context=texts,
    marks=st.sampled_from([frozenset(), frozenset({Mark.UNDONE})]),
    extra=st.dictionaries(st.sampled_from(["latency_ms", "cron_job_id", "é", "content", "_type"]), leaves, max_size=2),
)
keys = st.builds(
    SessionKey,
    st.sampled_from(["slack", "telegram", "console", "http"]),
    st.sampled_from(["local", "C1", "a:b", "-100 é", "%"]),
    st.sampled_from([None, "7", "1700.1", "a:b"]),
)


def kept(copy: SessionCopy) -> list[Message]:
    """State again which rows nanobot is given."""
    rows = [
        row for row in copy.rows if not row.marks and row.kind.value in ("chat", "command", "delivery", "announcement")
    ]
    called: set[str] = set()
    given = []
    for one in rows:
        if one.role is Role.ASSISTANT:
            called |= {call.id for call in one.tool_calls}
        if one.role is not Role.TOOL or not one.tool_call_id or one.tool_call_id in called:
            given.append(one)
    return given


def projected_row(row: Message) -> dict[str, Any]:
    """Return all of a row that goes through nanobot's format and back."""
    content = row.content if row.content or row.content is None else ""
    if row.runtime_context and content is None:
        content = ""
    is_announced = row.kind is Kind.ANNOUNCEMENT
    is_plain_system = row.role is Role.SYSTEM and row.kind is Kind.CHAT
    bookkeeping = {"injected_event", "_runtime_context", "role", "announcement", "content", "_type"}
    return {
        "role": Role.USER if is_announced else row.role,
        "kind": Kind.NOTICE if is_plain_system else row.kind,
        "content": content,
        "calls": row.tool_calls,
        "call_id": row.tool_call_id,
        "name": row.name,
        "reasoning": row.reasoning_content,
        "thinking": row.thinking_blocks,
        "created_at": row.created_at,
        "context": row.runtime_context or None,
        "sender": row.sender.id or None if row.sender else None,
        "apps": [one for one in row.attachments if one.kind == "CLI App"],
        "extra": {name: value for name, value in row.extra.items() if name not in bookkeeping},
    }


def projected_header(session: Session, rows: Sequence[Message]) -> dict[str, Any]:
    """Return all of a header that goes through nanobot's format and back."""
    title, source = session.title, session.title_source
    if source is TitleSource.GENERATED:
        title = without_thinking(title)
    if source <= TitleSource.FIRST_LINE or not title.strip():
        title, source = "", TitleSource.NONE
    state = CompactionState.read(session.compaction)
    summary = state.summary_text if state and state.summary_text.strip() else ""
    return {
        "key": session.key,
        "times": (session.created_at, session.updated_at),
        "title": (title, source),
        "summary": summary,
        "consolidated": sum(row.seq <= session.consolidated_through for row in rows),
        "metadata": {
            name: value
            for name, value in session.metadata.items()
            if name not in ("_last_summary", "title", "title_user_edited")
        },
    }


@unhurried
@given(copies(sendable), keys, st.sampled_from(ZONES))
def test_nanobot_can_read_every_export_and_forgets_nothing_of_it(
    copy: SessionCopy, key: SessionKey, zone: tzinfo
) -> None:
    copy = replace(copy, session=replace(copy.session, key=key))
    head, rows = strictly_read(nanobot_file(copy, zone=zone, path_of=path_of).lines)
    assert rows_it_would_forget(rows) == 0
    assert [without_context(row) or "" for row in rows] == [row.content or "" for row in kept(copy)]
    assert head["last_consolidated"] == sum(row.seq <= copy.session.consolidated_through for row in kept(copy))


@unhurried
@given(copies(sendable), keys, st.sampled_from(ZONES))
def test_an_import_of_an_export_gives_what_the_format_can_hold(
    copy: SessionCopy, key: SessionKey, zone: tzinfo
) -> None:
    copy = replace(copy, session=replace(copy.session, key=key))
    file = nanobot_file(copy, zone=zone, path_of=path_of)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "sessions"
        folder.mkdir()
        (folder / file.name).write_text("".join(file.lines), encoding="utf-8", newline="")
        (found,) = NanobotSource(folder, zone=zone, now=NOON).sessions()
    assert (found.repairs, found.notes, found.problem) == ([], (), "")
    assert found.copy is not None
    read, given_rows = found.copy, kept(copy)
    assert [projected_row(row) for row in read.rows] == [projected_row(row) for row in given_rows]
    assert projected_header(read.session, read.rows) == projected_header(copy.session, given_rows)
    assert [[one.name for one in row.media] for row in read.rows] == [
        [one.name for one in row.media if one.ref] for row in given_rows
    ]


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
    assert list(file.losses) == [
        "It is closed, and nanobot has one session to a key.",
        "nanobot pins nothing, and it is pinned.",
        "nanobot archives nothing, and it is archived.",
        "Its workspace, agent, model or mode is left out.",
        "What it may touch besides its workspace is left out.",
        "Where it came from is left out, but for its key.",
        "The session it was made from is left out.",
        "Where its replay begins is left out.",
        "What was kept besides the summary of its earlier rows is left out.",
        "1 rows are hidden, and nanobot would send them to a model; left out.",
        "2 notices and marks of interruption or compaction are left out.",
        "1 results of tools without their calls are left out.",
        "1 rows of the attic are left out.",
        "1 files lie nowhere that nanobot could read them; left out.",
        "1 attachments of a kind that nanobot does not know are left out.",
        "1 facts go by a name that has another meaning in nanobot; left out.",
        "1 messages are kept with the id of their sender and without the name.",
        "1 rows are kept without their turn, event, provider or model.",
    ]


def test_nothing_is_told_where_nothing_is_lost() -> None:
    assert exported(row(), row(2, role=Role.ASSISTANT, content="hello")).losses == []
