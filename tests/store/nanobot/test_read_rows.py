"""What becomes of the fields of nanobot's rows."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.message import Attachment, Kind, MediaRef, Message, Role, Sender, ToolCall
from gateway.ports.moving import LocalFile
from gateway.store.nanobot.media import MediaFiles
from gateway.store.nanobot.read_rows import RowReader
from tests.store.nanobot.nanobot_tree import CREATED_AT, NOW, ZONE, Row, assistant, user

SAID_AT = datetime(2026, 7, 1, 8, 0, 1, 500000, tzinfo=UTC)
ANNOUNCED = (
    "[Subagent 'look up' completed successfully]\n\nTask: Find it.\n\nResult:\nnot yet\n\n"
    "Result:\nFound: 42\n\nSummarize this naturally for the user."
)


def read(row: Row, workspace: Path = Path("/nowhere")) -> Message:
    return RowReader(zone=ZONE, fallback=CREATED_AT, media=MediaFiles(workspace)).message(row, 5)


def test_a_plain_row_is_read_field_by_field() -> None:
    expected = Message(role=Role.USER, content="Hallo", created_at=SAID_AT, seq=5)
    assert read(user("Hallo")) == expected


def test_an_answer_with_calls_is_read_field_by_field() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "exec", "arguments": '{"a": 1}'}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    row = assistant(None, tool_calls=[call], reasoning_content="why", thinking_blocks=[thinking], latency_ms=12)
    assert read(row) == Message(
        role=Role.ASSISTANT,
        tool_calls=(ToolCall(id="c1", name="exec", arguments='{"a": 1}'),),
        reasoning_content="why",
        thinking_blocks=(thinking,),
        created_at=datetime(2026, 7, 1, 8, 0, 2, tzinfo=UTC),
        seq=5,
        extra={"latency_ms": 12},
    )


def test_a_result_of_a_tool_is_read_field_by_field() -> None:
    row = {"role": "tool", "content": "ok", "tool_call_id": "c1", "name": "exec", "timestamp": "2026-07-01T08:00:00Z"}
    expected = Message(role=Role.TOOL, content="ok", tool_call_id="c1", name="exec", created_at=CREATED_AT, seq=5)
    assert read(row) == expected


@pytest.mark.parametrize(
    ("arguments", "text"),
    [({"a": "ü"}, '{"a": "ü"}'), (None, "{}"), ("", ""), ([1], "[1]"), (7, "7")],
)
def test_arguments_are_text(arguments: Any, text: str) -> None:
    row = assistant("", tool_calls=[{"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}])
    assert read(row).tool_calls == (ToolCall(id="c", name="f", arguments=text),)


def test_missing_arguments_are_empty_ones() -> None:
    row = assistant("", tool_calls=[{"id": "c", "function": {"name": "f"}}])
    assert read(row).tool_calls == (ToolCall(id="c", name="f", arguments="{}"),)
    assert read(row).extra == {}


@pytest.mark.parametrize(
    "odd",
    [{"function": {"name": "f"}}, {"id": "c", "function": {}}, {"id": 1, "function": {"name": "f"}}, {"id": "c"}, "x"],
)
def test_a_call_that_is_none_is_kept_aside(odd: Any) -> None:
    good = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    row = read(assistant("", tool_calls=[odd, good]))
    assert [call.id for call in row.tool_calls] == ["c"]
    assert row.extra == {"tool_calls": [odd]}


def test_a_call_that_says_more_is_kept_whole_as_well() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "signature": "s"}
    row = read(assistant("", tool_calls=[call]))
    assert len(row.tool_calls) == 1
    assert row.extra == {"tool_calls": [call]}


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"_command": True}, Kind.COMMAND),
        ({"_channel_delivery": True}, Kind.DELIVERY),
        ({"_command": False}, Kind.CHAT),
    ],
)
def test_flags_become_kinds(fields: dict[str, Any], kind: Kind) -> None:
    row = read(assistant("x", **fields))
    assert row.kind is kind
    assert row.extra == {name: value for name, value in fields.items() if value is not True}


@pytest.mark.parametrize(("build", "role"), [(user, None), (assistant, "assistant")])
def test_an_announcement_is_a_persons_row_with_its_fields(build: Any, role: str | None) -> None:
    fields = {"injected_event": "subagent_result", "subagent_task_id": "t1"}
    row = read(build(ANNOUNCED, sender_id="subagent", **fields))
    assert (row.role, row.kind, row.content) == (Role.USER, Kind.ANNOUNCEMENT, ANNOUNCED)
    assert row.sender == Sender(id="subagent")
    told = {
        "label": "look up",
        "status": "completed successfully",
        "task": "Find it.\n\nResult:\nnot yet",
        "result": "Found: 42",
    }
    assert row.extra == {**fields, "announcement": told, **({"role": role} if role else {})}


def test_an_announcement_in_other_words_stays_as_it_is() -> None:
    row = read(assistant("done", injected_event="subagent_result"))
    assert (row.kind, row.content) == (Kind.ANNOUNCEMENT, "done")
    assert "announcement" not in row.extra


def test_a_hidden_row_of_a_person_is_an_announcement_and_one_of_the_bot_is_not() -> None:
    assert read(user("x", _hidden_history=True)).kind is Kind.ANNOUNCEMENT
    assert read(assistant("x", _hidden_history=True)).kind is Kind.CHAT


def test_a_system_row_is_a_notice() -> None:
    row = read({"role": "system", "content": "You are…"})
    assert (row.role, row.kind, row.content) == (Role.SYSTEM, Kind.NOTICE, "You are…")
    assert row.created_at == CREATED_AT


@pytest.mark.parametrize("role", ["developer", "", None, 7, ["user"], {}])
def test_a_row_of_an_unknown_role_is_a_notice_that_holds_it_whole(role: Any) -> None:
    raw = {**user("x", odd=1), "role": role}
    row = read(raw)
    assert (row.role, row.kind, row.content) == (Role.SYSTEM, Kind.NOTICE, "x")
    assert row.extra == {"raw": raw}


def test_context_at_the_end_of_a_text_is_taken_off() -> None:
    marker = {"version": 1, "sources": ["time"], "suffix": "It is noon."}
    row = read(user("Hi\n\nIt is noon.", _runtime_context=marker))
    assert (row.content, row.runtime_context) == ("Hi", "It is noon.")
    assert row.extra == {"_runtime_context": {"version": 1, "sources": ["time"]}}
    assert read(user("It is noon.", _runtime_context=marker)).content == ""


def test_context_at_the_end_of_blocks_is_taken_off() -> None:
    first, *context = [{"type": "text", "text": text} for text in ("Hi", "It is noon.", "It rains.")]
    row = read(user([first, *context], _runtime_context={"version": 1, "sources": [], "blocks": context}))
    assert (row.content, row.runtime_context) == ([first], "It is noon.\n\nIt rains.")


@pytest.mark.parametrize(
    ("content", "marker"),
    [
        ("Hi\n\nIt is noon. ", {"version": 1, "suffix": "It is noon."}),
        ("Hi It is noon.", {"version": 1, "suffix": "It is noon."}),
        ("Hi\n\nIt is noon.", {"version": 2, "suffix": "It is noon."}),
        ("Hi", {"version": 1, "suffix": ""}),
        ("Hi", {"version": 1, "blocks": ["Hi"]}),
        ([{"type": "text", "text": "Hi"}], {"version": 1, "blocks": [{"type": "text", "text": "Ho"}]}),
        ([{"type": "image"}], {"version": 1, "blocks": [{"type": "image"}]}),
        ("Hi", "Hi"),
        ("Hi", True),
    ],
)
def test_context_that_is_not_there_is_not_taken_off(content: Any, marker: Any) -> None:
    row = read(user(content, _runtime_context=marker))
    assert (row.content, row.runtime_context) == (content, None)
    assert row.extra == {"_runtime_context": marker}


def test_apps_become_attachments() -> None:
    apps = [{"name": "DrawIO", "entry_point": "cli-drawio"}, {"name": "gh", "skill": "skills/gh.md"}]
    row = read(user("x", cli_apps=apps))
    assert row.attachments == (
        Attachment(kind="CLI App", name="drawio", details={"tool": "run_cli_app", "entry_point": "cli-drawio"}),
        Attachment(
            kind="CLI App",
            name="gh",
            details={"tool": "run_cli_app", "entry_point": "unknown", "skill": "skills/gh.md"},
        ),
    )
    assert row.extra == {}


@pytest.mark.parametrize("odd", ["gh", {"entry_point": "x"}, {"name": " "}, {"name": 7}, None])
def test_an_app_that_is_none_is_kept_aside(odd: Any) -> None:
    row = read(user("x", cli_apps=[odd, {"name": "gh"}]))
    assert [app.name for app in row.attachments] == ["gh"]
    assert row.extra == {"cli_apps": [odd]}


def test_fields_that_are_unknown_or_of_an_odd_shape_keep_their_names() -> None:
    odd = {
        "media": "/a.png", "cli_apps": {}, "thinking_blocks": "x", "name": 7, "tool_call_id": [], "sender_id": True,
        "mcp_presets": [{"name": "x"}], "cron_job_id": "c", "timestamp": "yesterday",
    }  # fmt: skip
    row = read({**user("x"), **odd})
    assert row == Message(role=Role.USER, content="x", created_at=CREATED_AT, seq=5, extra=odd)


def test_content_that_is_no_text_is_kept_and_shown_as_json() -> None:
    row = read(user({"a": "ü"}))
    assert (row.content, row.extra) == ('{"a": "ü"}', {"content": {"a": "ü"}})
    assert read(user(["a", {"type": "text", "text": "b"}])).text == "a\nb"


def test_a_file_becomes_a_reference_with_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "pic.PNG").write_bytes(b"12345")
    (tmp_path / "in" / "voice.ogg").write_bytes(b"1")
    media = MediaFiles(tmp_path)
    row = RowReader(zone=ZONE, fallback=NOW, media=media).message(
        user("x", media=[str(tmp_path / "pic.PNG"), "in/voice.ogg", "/gone/a.pdf", "C:\\x\\film.mp4", 7, ""]), 1
    )
    assert row.media == (
        MediaRef(ref="file:0", kind="image", name="pic.PNG", mime="image/png", size_bytes=5),
        MediaRef(ref="file:1", kind="audio", name="voice.ogg", mime="audio/ogg", size_bytes=1),
        MediaRef(ref="", kind="file", name="a.pdf", mime="application/pdf"),
        MediaRef(ref="", kind="video", name="film.mp4", mime="video/mp4"),
    )
    assert media.files == {
        "file:0": LocalFile(path=tmp_path / "pic.PNG"),
        "file:1": LocalFile(path=tmp_path / "in" / "voice.ogg"),
    }
    assert row.extra == {"media": [7, ""]}


@pytest.mark.parametrize("path", [".", "/dev/null", "x\0y", "/" + "a" * 5000, "loop.png"])
def test_what_is_no_file_to_keep_has_no_reference(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    (ref,) = read(user("x", media=[path]), tmp_path).media
    assert (ref.ref, ref.size_bytes) == ("", None)


def test_a_file_that_is_not_there_is_told_by_its_name_and_not_by_its_path(tmp_path: Path) -> None:
    media = MediaFiles(tmp_path)
    reader = RowReader(zone=ZONE, fallback=NOW, media=media)
    reader.message(user("x", media=["/home/secret/a.pdf"]), 1)
    assert media.missing.all() == ["the file a.pdf is not there or cannot be read; its name is kept"]


def test_a_file_of_any_size_is_given_out_for_the_import_to_decide(tmp_path: Path) -> None:
    with (tmp_path / "film.mkv").open("wb") as film:
        film.truncate(60 << 20)
    media = MediaFiles(tmp_path)
    row = RowReader(zone=ZONE, fallback=NOW, media=media).message(user("x", media=["film.mkv"]), 1)
    assert (row.media[0].ref, row.media[0].size_bytes) == ("file:0", 60 << 20)


def test_a_picture_in_the_content_becomes_a_reference_with_its_bytes() -> None:
    url = "data:image/jpeg;base64," + base64.b64encode(b"pixels").decode()
    text, remote = {"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}
    broken = {"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}
    media = MediaFiles(Path("/nowhere"))
    row = RowReader(zone=ZONE, fallback=NOW, media=media).message(
        user([text, {"type": "image_url", "image_url": {"url": url}}, remote, broken]), 1
    )
    assert row.content == [text, remote, broken]
    assert row.media == (MediaRef(ref="file:0", kind="image", name="image.jpg", mime="image/jpeg", size_bytes=6),)
    assert media.files == {"file:0": LocalFile(data=b"pixels")}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = (
    "role", "content", "timestamp", "tool_calls", "tool_call_id", "name", "reasoning_content", "thinking_blocks",
    "media", "cli_apps", "sender_id", "_runtime_context", "_command", "_hidden_history", "injected_event",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), json_values | st.sampled_from(["user", "subagent_result", 1, True])))
def test_no_row_raises(raw: Row) -> None:
    kept = read(raw)
    assert replace(kept, extra={}).seq == 5
