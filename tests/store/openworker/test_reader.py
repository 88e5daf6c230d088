"""Importing from openworker: what a whole store of it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.domain.compaction import CompactionState
from gateway.domain.errors import InvalidKey, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.moving import imported_id
from gateway.ports.sessions import Restored
from gateway.store.openworker.reader import OpenworkerSource
from tests.clock import ManualClock
from tests.store.openworker.openworker_tree import (
    ASKED_AT,
    CONVERSATION,
    NOW,
    OLDEST,
    ONE,
    TWO,
    USED_AT,
    Tree,
    copy_of,
    lines,
    only,
    read,
)
from tests.stores import open_engine

STATE = {
    "boundary_index": 3,
    "summary_text": "They looked around.",
    "working_state": "Files:\n\n- a.txt",
    "user_messages": ["What is here?"],
    "user_messages_dropped": 2,
    "created_at": "2026-07-01T10:00:08+00:00",
    "model_used": "m",
    "trimmed": False,
}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "coworker")


def header(tree: Tree, **columns: Any) -> Session:
    tree.session(ONE, **columns)
    return copy_of(only(tree)).session


def test_a_session_of_the_newest_version_keeps_every_field(tree: Tree) -> None:
    roots = [{"path": "/more", "writable": True, "label": "more"}]
    grants = {"tools": ["edit"], "commands": ["ls"], "readonly": True}
    team = {"team_id": "t", "role": "lead"}
    tree.session(
        ONE,
        workspace="/home/x",
        model="anthropic:big",
        mode="auto",
        agent="ops",
        title="What is here?",
        auto_title="Looking around",
        n_msgs=7,
        extra_roots=roots,
        pinned=1,
        origin="slack",
        origin_label="#general · T0AB",
        grants=grants,
        compaction=STATE,
        team=team,
    )
    found = only(tree)
    assert (found.name, list(found.repairs), list(found.notes), found.problem) == (ONE, [], [], "")
    assert copy_of(found).session == Session(
        id=ONE,
        key=SessionKey("openworker", ONE),
        created_at=ASKED_AT,
        updated_at=USED_AT,
        workspace="/home/x",
        agent="ops",
        model="anthropic:big",
        mode="auto",
        title="Looking around",
        title_source=TitleSource.GENERATED,
        message_count=7,
        extra_roots=tuple(roots),
        grants=grants,
        pinned=True,
        origin=Origin(kind="slack", label="#general · T0AB"),
        consolidated_through=3,
        compaction=CompactionState(
            summary_text="They looked around.",
            working_state={"earlier": ["Files:", "- a.txt"]},
            user_messages=["What is here?"],
            user_messages_dropped=2,
            created_at="2026-07-01T10:00:08+00:00",
            model_used="m",
        ).as_stored(),
        metadata={"team": team},
    )


async def test_what_is_imported_is_kept_by_a_store_as_it_is(tree: Tree, tmp_path: Path) -> None:
    tree.session(ONE, [*CONVERSATION, {"role": "wizard", "n": float("nan"), "s": "\ud800\0"}], compaction=STATE)
    tree.session("odd \x07 : %", title=b"\xed\xa0\x80 title\0", origin=b"\xff", team={"a": "\ud800"}, model=b"\xff")
    tree.row(b"\xed\xa0\x80", grants={"n": float("inf")})
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        for found in read(tree.directory):
            whole = copy_of(found)
            assert await store.sessions.restore(whole) is Restored.ADDED
            kept = await store.sessions.copy(whole.session.id)
            assert [row.extra for row in kept.rows] == [row.extra for row in whole.rows]
            assert kept.session.compaction == whole.session.compaction
            assert kept.session.updated_at == USED_AT


def test_a_session_of_the_oldest_version_is_read_without_the_later_columns(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "old", OLDEST, alters=False)
    tree.session(ONE, title="What is here?")
    session = copy_of(only(tree)).session
    assert (session.title, session.title_source) == ("What is here?", TitleSource.FIRST_LINE)
    assert (session.agent, session.grants, session.origin, session.metadata) == ("", {}, None, {})


def test_rows_that_an_old_version_kept_in_the_index_are_read(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "old", OLDEST, alters=False)
    tree.row(ONE, messages=CONVERSATION)
    tree.session(TWO, [{"role": "user", "content": "from the file"}], messages=CONVERSATION)
    first, second = read(tree.directory)
    assert [row.content for row in copy_of(first).rows][-1] == "Thanks"
    assert (len(copy_of(first).rows), first.repairs, first.notes) == (7, [], [])
    assert [row.content for row in copy_of(second).rows] == ["from the file"]


def test_columns_that_nobody_knows_are_kept_in_the_metadata(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "new", OLDEST.replace("mode TEXT", "mode TEXT, mood TEXT, luck INTEGER"))
    tree.session(ONE, mood="good", luck=3)
    assert copy_of(only(tree)).session.metadata == {"openworker": {"mood": "good", "luck": "3"}}


@pytest.mark.parametrize(
    ("columns", "title", "source"),
    [
        ({"title": " My \n own ", "renamed": 1, "auto_title": "Made"}, "My own", TitleSource.EDITED),
        ({"title": "First", "auto_title": "Made"}, "Made", TitleSource.GENERATED),
        ({"title": "First", "auto_title": ""}, "First", TitleSource.FIRST_LINE),
        ({"title": "x" * 200, "renamed": 1}, "x" * 120, TitleSource.EDITED),
        ({"title": "New session"}, "", TitleSource.NONE),
        ({"title": "  ", "renamed": 1}, "", TitleSource.NONE),
        ({"title": b"caf\xe9", "renamed": "junk"}, "caf\ufffd", TitleSource.FIRST_LINE),
    ],
)
def test_the_title_is_the_one_openworker_shows(
    tree: Tree, columns: dict[str, Any], title: str, source: TitleSource
) -> None:
    session = header(tree, **columns)
    assert (session.title, session.title_source) == (title, source)


def test_an_id_that_is_not_like_ours_gets_one_of_ours_and_is_kept(tree: Tree) -> None:
    tree.session("My session")
    session = copy_of(only(tree)).session
    assert session.id == imported_id("openworker", "My session")
    assert session.key == SessionKey("openworker", "My session")
    assert session.metadata == {"openworker": {"session_id": "My session"}}


def test_internal_sessions_are_imported_as_archived(tree: Tree) -> None:
    for name in ("__run__1", "__task__2", "other"):
        tree.session(name)
    assert [copy_of(found).session.archived for found in read(tree.directory)] == [True, True, False]


def test_keys_get_the_name_of_the_channel_that_is_asked_for(tree: Tree) -> None:
    tree.session(ONE)
    assert str(copy_of(only(tree, channels={"openworker": "desk"})).session.key) == f"desk:{ONE}"
    with pytest.raises(InvalidKey):
        only(tree, channels={"openworker": "No Channel"})


@pytest.mark.parametrize("place", ["", "conversations", "workspace"])
def test_the_source_is_found_by_any_of_its_folders(tmp_path: Path, place: str) -> None:
    directory = tmp_path / "w"
    tree = Tree(directory / ".coworker" if place == "workspace" else directory)
    tree.session(ONE, title="T")
    (found,) = read(directory / "conversations" if place == "conversations" else directory)
    assert copy_of(found).session.title == "T"


def test_a_folder_of_conversations_under_another_name_is_found_by_the_index_beside_it(tree: Tree) -> None:
    tree.session(ONE, title="T")
    tree.folder.rename(tree.directory / "talks")
    (found,) = read(tree.directory / "talks")
    assert (copy_of(found).session.title, len(copy_of(found).rows)) == ("T", 7)


def test_a_folder_without_any_of_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text("{}")
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Refused, match=r"expected a folder with openworker's coworker\.db"):
            read(directory)


def test_sessions_come_in_the_same_order_each_time_and_are_counted(tree: Tree) -> None:
    tree.session(TWO)
    tree.row("b")
    tree.file("a", CONVERSATION)
    names = [found.name for found in read(tree.directory)]
    assert names == ["a", "b", TWO]
    assert OpenworkerSource(tree.directory, now=NOW).count() == 3


def test_the_compaction_stands_for_the_rows_before_its_boundary_the_system_row_and_notices_too(tree: Tree) -> None:
    assert header(tree, compaction={**STATE, "boundary_index": 6}).consolidated_through == 6


def test_a_line_that_is_lost_does_not_move_the_boundary(tree: Tree) -> None:
    whole = lines(CONVERSATION).split(b"\n")
    tree.session(ONE, b"\n".join([whole[0], b"torn", b"", *whole[2:]]), compaction={**STATE, "boundary_index": 4})
    found = only(tree)
    kept = copy_of(found)
    assert next(row.content for row in kept.rows if row.seq > kept.session.consolidated_through) == "One file."
    assert list(found.repairs) == ["line 2: not JSON, left out"]


@pytest.mark.parametrize("boundary", [0, -1, 7, 99, True, "3", 3.0, None, [3]])
def test_a_compaction_that_names_no_row_is_set_aside(tree: Tree, boundary: Any) -> None:
    tree.session(ONE, compaction={**STATE, "boundary_index": boundary})
    found = only(tree)
    session = copy_of(found).session
    assert (session.compaction, session.consolidated_through) == ({}, 0)
    assert session.metadata["openworker"]["compaction"]["summary_text"] == "They looked around."
    assert list(found.repairs) == ["the compaction names no row of the session and was set aside"]


def test_a_compaction_with_fields_of_other_shapes_keeps_the_rest(tree: Tree) -> None:
    state = {"boundary_index": 2, "summary_text": 5, "working_state": ["x"], "created_at": 1782900000, "trimmed": True}
    compaction = header(tree, compaction=state).compaction
    assert compaction == CompactionState(created_at="2026-07-01T10:00:00+00:00", trimmed=True).as_stored()


def test_a_session_is_as_old_as_its_first_row_with_a_time(tree: Tree) -> None:
    assert header(tree).created_at == ASKED_AT
