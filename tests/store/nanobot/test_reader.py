"""Importing whole sessions of nanobot: headers, and what goes into a store."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.compaction import CompactionState
from gateway.domain.errors import Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Kind, Message, Role
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.moving import imported_id
from gateway.ports.sessions import Restored, Retired
from gateway.store.nanobot.reader import NanobotSource
from tests.clock import ManualClock
from tests.store.nanobot.nanobot_tree import (
    CREATED,
    CREATED_AT,
    NOW,
    UPDATED_AT,
    ZONE,
    Tree,
    assistant,
    canonical,
    header,
    lines,
    user,
)
from tests.stores import open_engine


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / ".nanobot")


def test_a_session_is_read_field_by_field(tree: Tree) -> None:
    summary = {"text": "They said hello.", "last_active": "2026-07-01T12:00:00"}
    metadata = {"title": "Hello", "_last_summary": summary, "last_channel": "slack:C1", "runtime_checkpoint": {"a": 1}}
    tree.session("slack:C1:17.1", user("a"), assistant("b"), user("c"), metadata=metadata, last_consolidated=2)
    copy = tree.copy()
    del metadata["title"]
    assert copy.session == Session(
        id=imported_id("nanobot", "slack:C1:17.1", CREATED),
        key=SessionKey("slack", "C1", "17.1"),
        created_at=CREATED_AT,
        updated_at=UPDATED_AT,
        title="Hello",
        title_source=TitleSource.GENERATED,
        message_count=3,
        origin=Origin(kind="slack", chat_id="C1", thread="17.1"),
        consolidated_through=2,
        compaction=CompactionState(summary_text="They said hello.", created_at="2026-07-01T12:00:00").as_stored(),
        metadata=metadata,
    )
    assert [(row.seq, row.role, row.content) for row in copy.rows] == [
        (1, Role.USER, "a"), (2, Role.ASSISTANT, "b"), (3, Role.USER, "c"),
    ]  # fmt: skip
    assert copy.attic == []


def test_it_has_the_name_of_its_key_and_nothing_to_tell(tree: Tree) -> None:
    tree.session("cli:direct", user("a"))
    (found,) = tree.found()
    assert (found.name, found.repairs, found.notes, found.problem, found.files) == ("cli:direct", [], (), "", {})


def test_a_terminal_is_listed_as_one_like_those_that_began_here(tree: Tree) -> None:
    tree.session("cli:direct", user("a"))
    session = tree.copy().session
    assert (session.key, session.origin) == (
        SessionKey("console", "local"),
        Origin(kind="console", label="terminal", chat_id="local", actor="local"),
    )


def test_channels_are_renamed(tree: Tree) -> None:
    tree.session("slack:C1", user("a"))
    session = tree.copy(channels={"slack": "slack-acme"}).session
    assert session.key == SessionKey("slack-acme", "C1")
    assert session.origin == Origin(kind="slack", chat_id="C1")


def test_a_channel_that_cannot_be_is_refused_at_once(tree: Tree) -> None:
    tree.session("slack:C1", user("a"))
    with pytest.raises(Refused, match="channel name"):
        NanobotSource(tree.workspace, channels={"slack": "Slack!"}, zone=ZONE, now=NOW)


@pytest.mark.parametrize(
    ("metadata", "title", "source", "kept"),
    [
        ({}, "", TitleSource.NONE, {}),
        ({"title": "  My <think> title  ", "title_user_edited": True}, "  My <think> title  ", TitleSource.EDITED, {}),
        ({"title": "<think> hm"}, "", TitleSource.NONE, {"title": "<think> hm"}),
        ({"title": "<think>a</think> Rome"}, "Rome", TitleSource.GENERATED, {"title": "<think>a</think> Rome"}),
        ({"title": 7}, "", TitleSource.NONE, {"title": 7}),
        ({"title": "Rome", "title_user_edited": 1}, "Rome", TitleSource.GENERATED, {}),
    ],
)
def test_titles_keep_where_they_are_from(
    tree: Tree, metadata: dict[str, Any], title: str, source: TitleSource, kept: dict[str, Any]
) -> None:
    tree.session("slack:C1", user("a"), metadata=metadata)
    session = tree.copy().session
    assert (session.title, session.title_source, session.metadata) == (title, source, kept)


@pytest.mark.parametrize(
    ("offset", "through"),
    [(0, 0), (1, 1), (2, 2), (3, 0), (-1, 0), (True, 0), ("2", 0), (1.0, 0), (None, 0), (10**40, 0)],
)
def test_an_offset_that_cannot_be_is_none(tree: Tree, offset: Any, through: int) -> None:
    tree.session("slack:C1", user("a", _command=True), user("b"), last_consolidated=offset)
    assert tree.copy().session.consolidated_through == through


def test_a_lost_row_does_not_move_the_offset(tree: Tree) -> None:
    data = lines(header("slack:C1", last_consolidated=3), user("a"), user("lost"), user("c"), user("d"))
    tree.put(data.replace(b'"lost"', b'"lost'), canonical("slack:C1"))
    (found,) = tree.found()
    assert found.copy is not None
    assert found.repairs == ["line 3: not JSON, left out"]
    assert [row.content for row in found.copy.rows if row.seq <= found.copy.session.consolidated_through] == ["a", "c"]


@pytest.mark.parametrize("text", ["", "yesterday", None, 17, [], "0001-01-01T00:00:00", "2026-13-01"])
def test_a_time_that_is_none_is_the_files(tree: Tree, text: Any) -> None:
    path = tree.session("slack:C1", {"role": "user", "content": "a"}, created_at=text, updated_at=text)
    os.utime(path, (1_790_000_000, 1_790_000_000))
    copy = tree.copy()
    changed = datetime.fromtimestamp(1_790_000_000, UTC)
    assert (copy.session.created_at, copy.session.updated_at) == (changed, changed)
    assert copy.rows[0].created_at == changed


def test_a_time_with_a_zone_is_read_in_it(tree: Tree) -> None:
    tree.session("slack:C1", user("a"), created_at="2026-07-01T08:00:00+00:00")
    assert tree.copy().session.created_at == CREATED_AT


def test_a_later_row_of_metadata_replaces_the_first(tree: Tree) -> None:
    later = header("slack:C1", metadata={"title": "New"}, last_consolidated=1)
    rows = lines(header("slack:C1", metadata={"title": "Old", "x": 1}), user("a"), later, user("b"))
    tree.put(rows, canonical("slack:C1"))
    copy = tree.copy()
    assert (copy.session.title, copy.session.metadata, copy.session.consolidated_through) == ("New", {}, 1)
    assert [row.content for row in copy.rows] == ["a", "b"]


def test_metadata_of_an_odd_shape_and_fields_unknown_are_kept(tree: Tree) -> None:
    tree.session("slack:C1", user("a"), metadata=[1], fancy={"b": 2})
    assert tree.copy().session.metadata == {"nanobot": {"metadata": [1], "fancy": {"b": 2}}}


@pytest.mark.parametrize(
    ("summary", "text"), [("Old form.", "Old form."), ({"text": " "}, None), (7, None), ([], None)]
)
def test_only_a_summary_with_words_is_one(tree: Tree, summary: Any, text: str | None) -> None:
    tree.session("slack:C1", user("a"), metadata={"_last_summary": summary})
    session = tree.copy().session
    state = CompactionState.read(session.compaction)
    assert (state.summary_text if state else None) == text
    assert session.metadata == {"_last_summary": summary}


def test_what_a_provider_keeps_for_itself_goes_into_the_attic(tree: Tree) -> None:
    state = {"_type": "provider_state", "state": {"kind": "openai_responses", "payload": {"id": "r1"}}}
    other = {"_type": "later", "x": 1}
    rows = lines(header("slack:C1", last_archived=1, last_consolidated=2), state, user("a"), other, user("b"))
    tree.put(rows, canonical("slack:C1"))
    copy = tree.copy()
    assert [(row.seq, row.content) for row in copy.rows] == [(1, "a"), (2, "b")]
    assert copy.session.consolidated_through == 1
    assert copy.attic == [
        Retired(row=notice, reason=reason, moved_at=UPDATED_AT)
        for reason, notice in [
            ("provider state", Message(role=Role.SYSTEM, kind=Kind.NOTICE, seq=3, created_at=CREATED_AT,
                                       extra={"raw": state})),
            ("no message", Message(role=Role.SYSTEM, kind=Kind.NOTICE, seq=4, created_at=CREATED_AT,
                                   extra={"raw": other})),
        ]
    ]  # fmt: skip


def test_media_are_found_in_the_workspace(tree: Tree) -> None:
    tree.session("slack:C1", user("a", media=["media/a.png"]))
    (tree.workspace / "media").mkdir()
    (tree.workspace / "media" / "a.png").write_bytes(b"123")
    (found,) = tree.found()
    assert found.copy is not None
    (ref,) = found.copy.rows[0].media
    assert found.files[ref.ref].path == tree.workspace / "media" / "a.png"


def test_a_session_without_rows_is_one(tree: Tree) -> None:
    tree.session("slack:C1")
    assert tree.copy().rows == []


def test_reading_twice_finds_the_same_and_changes_nothing(tree: Tree) -> None:
    for key in ("slack:C1", "telegram:1:topic:2", "cli:direct"):
        tree.session(key, user(key))
    before = [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(tree.sessions.iterdir())]
    source = NanobotSource(tree.workspace, zone=ZONE, now=NOW)
    assert list(source.sessions()) == list(source.sessions()) == tree.found()
    assert source.count() == 3
    assert before == [(path, path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(tree.sessions.iterdir())]


async def test_what_is_found_goes_into_a_store_and_comes_out_as_it_was(tree: Tree, tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1e3}}}
    odd = {"role": "user", "content": "x", "n": float("nan"), "big": 10**200, "text": "\ud800"}
    data = lines(
        header("slack:C1", metadata={"title": "T"}), {"_type": "provider_state", "state": {}},
        user("a", sender_id="U1", cli_apps=[{"name": "gh"}], media=["/gone.png"]), assistant("b", tool_calls=[call]),
    )  # fmt: skip
    tree.put(data + json_line(odd) + b"\xff\n", canonical("slack:C1"))
    copy = tree.copy()
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        assert await store.sessions.restore(copy) is Restored.ADDED
        assert await store.sessions.restore(copy) is Restored.KNOWN
        kept = await store.sessions.copy(copy.session.id)
    assert [forgetful(row) for row in kept.rows] == [forgetful(row) for row in copy.rows]
    assert [forgetful(retired.row) for retired in kept.attic] == [forgetful(retired.row) for retired in copy.attic]
    assert (kept.session.title, kept.session.metadata) == ("T", {})


def forgetful(row: Message) -> Message:
    """Return the row without its count of tokens, which the store makes."""
    return Message(**{**{name: getattr(row, name) for name in Message.__slots__}, "tokens": None})


def json_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def test_two_sessions_of_one_key_that_do_not_say_when_they_were_made_have_two_ids(tree: Tree, tmp_path: Path) -> None:
    other = Tree(tmp_path / "other")
    tree.put(lines(user("a"), user("b")), canonical("slack:C1"))
    other.put(lines(user("c"), user("b")), canonical("slack:C1"))
    ids = [one.copy().session.id for one in (tree, other)]
    assert ids[0] != ids[1]
    tree.put(lines(user("a"), user("b"), user("went on")), canonical("slack:C1"))
    assert tree.copy().session.id == ids[0]


def test_lines_of_another_program_are_no_session(tree: Tree) -> None:
    tree.put(lines({"level": "info", "message": "started"}, {"_type": "log"}), "server.jsonl")
    tree.session("slack:C1", user("a"))
    problems = {one.name: one.problem for one in tree.found()}
    assert problems["slack:C1"] == ""
    assert problems["server.jsonl"].startswith("it is no session of nanobot's")
