"""Finding nanobot's sessions in all the places it has kept them, and telling which file is whose."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.domain.errors import Refused
from gateway.ports.moving import FoundSession, imported_id
from gateway.store.nanobot.reader import NanobotSource
from tests.store.nanobot.nanobot_tree import (
    CREATED,
    NOW,
    UPDATED_AT,
    ZONE,
    Tree,
    canonical,
    header,
    lines,
    lossy,
    user,
)

ONE, TWO = "1" * 32, "2" * 32
LATER = "2026-07-03T00:00:00"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / ".nanobot")


def heard(found: list[FoundSession]) -> list[tuple[str, object, bool]]:
    """Return of each session its name, its first words and whether it is open."""
    copies = [(one.name, one.copy) for one in found]
    return [(name, copy.rows[0].content, copy.session.closed_at is None) for name, copy in copies if copy]


def test_a_workspace_a_home_and_a_directory_of_sessions_are_told_apart(tree: Tree) -> None:
    tree.session("slack:C1", user("a"))
    for directory in (tree.home, tree.workspace, tree.sessions):
        assert heard(tree.found(directory)) == [("slack:C1", "a", True)]


def test_a_directory_of_any_name_is_one_of_sessions_if_it_holds_some(tree: Tree, tmp_path: Path) -> None:
    tree.session("slack:C1", user("a"), folder=tmp_path / "backup")
    assert heard(tree.found(tmp_path / "backup")) == [("slack:C1", "a", True)]


def test_an_empty_workspace_holds_no_sessions(tree: Tree) -> None:
    tree.sessions.mkdir(parents=True)
    assert tree.found() == []
    assert NanobotSource(tree.workspace, zone=ZONE, now=NOW).count() == 0


@pytest.mark.parametrize("make", ["nothing", "file", "other"])
def test_a_place_without_sessions_is_refused(tmp_path: Path, make: str) -> None:
    (tmp_path / "file").write_text("{}")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("x")
    with pytest.raises(Refused, match="expected a"):
        NanobotSource(tmp_path / make, zone=ZONE, now=NOW)


@pytest.mark.parametrize("place", ["workspace", "global"])
def test_old_names_still_load(tree: Tree, place: str) -> None:
    tree.sessions.mkdir(parents=True)
    folder = tree.sessions if place == "workspace" else tree.globals
    tree.put(lines(header("telegram:a_b"), user("a")), lossy("telegram:a_b"), folder)
    for directory in (tree.home, tree.workspace):
        (found,) = tree.found(directory)
        assert heard([found]) == [("telegram:a_b", "a", True)]
        assert found.notes == ()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("telegram_42.jsonl", "telegram:42"),
        ("telegram_-100_topic_7.jsonl", "telegram:-100:topic:7"),
        ("slack_C1_17.25.jsonl", "slack:C1:17.25"),
        ("telegram_a_b.jsonl", "telegram:a_b"),
        ("heartbeat.jsonl", "heartbeat"),
        ("cli_direct.jsonl", "cli:direct"),
    ],
)
def test_a_key_that_is_nowhere_written_is_guessed_and_that_is_told(tree: Tree, name: str, key: str) -> None:
    tree.put(lines(header(None), user("a")), name)
    (found,) = tree.found()
    assert found.name == key
    assert list(found.notes) == [f"its key '{key}' is guessed from its name"]


def test_a_key_that_is_nowhere_written_is_the_one_its_name_spells(tree: Tree) -> None:
    tree.put(lines(header(None), user("a")), canonical("slack:C1:17.1"))
    (found,) = tree.found()
    assert (found.name, found.notes) == ("slack:C1:17.1", ())


def test_keys_that_shared_a_name_are_two_sessions(tree: Tree) -> None:
    """Case D1."""
    tree.put(lines(header("telegram:a:b"), user("colon")), lossy("telegram:a:b"))
    tree.session("telegram:a_b", user("line"))
    assert sorted(heard(tree.found())) == [("telegram:a:b", "colon", True), ("telegram:a_b", "line", True)]


def test_an_old_file_without_a_key_belongs_to_the_key_that_has_its_name(tree: Tree) -> None:
    tree.session("telegram:a:b", user("new"))
    tree.put(lines(header(None), user("old")), lossy("telegram:a:b"))
    assert sorted(heard(tree.found())) == [("telegram:a:b", "new", True), ("telegram:a:b", "old", False)]


def test_a_file_behind_another_is_a_closed_session_of_its_own(tree: Tree) -> None:
    tree.session("telegram:1", user("canonical"))
    tree.put(lines(header("telegram:1", updated_at=LATER), user("lossy")), lossy("telegram:1"))
    tree.put(lines(header("telegram:1"), user("global")), lossy("telegram:1"), tree.globals)
    found = tree.found(tree.home)
    assert heard(found) == [
        ("telegram:1", "canonical", True), ("telegram:1", "lossy", False), ("telegram:1", "global", False),
    ]  # fmt: skip
    ids = [one.copy.session.id for one in found if one.copy]
    assert ids == [
        imported_id("nanobot", "telegram:1", CREATED),
        imported_id("nanobot", "telegram:1", CREATED, "workspace/telegram_1.jsonl"),
        imported_id("nanobot", "telegram:1", CREATED, "global/telegram_1.jsonl"),
    ]
    assert [len(one.notes) for one in found] == [0, 1, 1]
    assert "workspace/" + canonical("telegram:1") in found[1].notes[0]
    assert found[2].copy is not None
    assert found[2].copy.session.closed_at == UPDATED_AT
    assert ids == [one.copy.session.id for one in tree.found() if one.copy]


def test_an_empty_file_hides_no_other(tree: Tree) -> None:
    tree.put(b"", canonical("telegram:1"))
    tree.put(lines(header("telegram:1"), user("lossy")), lossy("telegram:1"))
    found = tree.found()
    assert heard(found) == [("telegram:1", "lossy", True)]
    assert [one.problem for one in found if not one.copy] == ["it is empty"]


def test_a_file_named_for_another_key_comes_last(tree: Tree) -> None:
    tree.put(lines(header("telegram:1"), user("stray")), "copy of telegram.jsonl")
    assert heard(tree.found()) == [("telegram:1", "stray", True)]
    tree.session("telegram:1", user("right"))
    assert sorted(heard(tree.found())) == [("telegram:1", "right", True), ("telegram:1", "stray", False)]


def test_a_name_that_spells_another_key_wins_over_what_the_file_says(tree: Tree) -> None:
    tree.put(lines(header("telegram:2"), user("a")), canonical("telegram:1"))
    (found,) = tree.found()
    assert found.name == "telegram:1"
    assert "'telegram:2'" in found.notes[0]


def test_the_later_of_two_keys_that_become_one_stays_open(tree: Tree) -> None:
    tree.session("cli:direct", user("old"))
    tree.session("cli:local", user("new"), updated_at=LATER)
    found = tree.found()
    assert sorted(heard(found)) == [("cli:direct", "old", False), ("cli:local", "new", True)]
    (closed,) = [one for one in found if one.name == "cli:direct"]
    assert closed.copy is not None
    assert closed.copy.session.closed_at == UPDATED_AT
    assert list(closed.notes) == ["'cli:local' has the same key here and was used later, so this one is closed"]


def test_directories_by_the_id_of_a_workspace_are_read(tree: Tree, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere"
    tree.session("telegram:1", user("mine"), folder=tree.id_folder(ONE))
    tree.session("telegram:2", user("other's"), folder=tree.id_folder(TWO, other))
    tree.session("telegram:1", user("before"))
    (tree.globals / ONE / ".workspace-migration.lock").write_text("")
    assert heard(tree.found(tree.home)) == [
        ("telegram:1", "mine", True), ("telegram:2", "other's", True), ("telegram:1", "before", False),
    ]  # fmt: skip
    assert heard(tree.found(tree.workspace)) == [("telegram:1", "mine", True), ("telegram:1", "before", False)]
    assert heard(tree.found(tree.globals / TWO)) == [("telegram:2", "other's", True)]
    assert sorted(heard(tree.found(tree.globals))) == [
        ("telegram:1", "mine", True), ("telegram:2", "other's", True),
    ]  # fmt: skip


def test_the_same_key_in_two_workspaces_is_two_sessions_of_which_the_later_is_open(tree: Tree, tmp_path: Path) -> None:
    tree.session("telegram:1", user("mine"), folder=tree.id_folder(ONE))
    tree.session("telegram:1", user("other's"), folder=tree.id_folder(TWO, tmp_path / "x"), updated_at=LATER)
    found = tree.found(tree.home)
    assert heard(found) == [("telegram:1", "mine", False), ("telegram:1", "other's", True)]
    assert len({one.copy.session.id for one in found if one.copy}) == 2


def test_media_are_looked_for_in_the_workspace_a_directory_names(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.png").write_bytes(b"1")
    tree.session("telegram:1", user("a", media=["a.png"]), folder=tree.id_folder(ONE, tmp_path / "elsewhere"))
    (found,) = tree.found(tree.home)
    assert [file.path for file in found.files.values()] == [tmp_path / "elsewhere" / "a.png"]


def test_what_a_save_left_behind_counts_only_where_nothing_else_is(tree: Tree) -> None:
    tree.session("telegram:1", user("whole"))
    tree.put(lines(header("telegram:1"), user("half")), canonical("telegram:1") + ".tmp")
    tree.put(lines(header("telegram:2"), user("all there is")), f".{canonical('telegram:2')}.0a1b.tmp")
    found = {one.name: one for one in tree.found()}
    assert sorted(heard(list(found.values()))) == [("telegram:1", "whole", True), ("telegram:2", "all there is", True)]
    assert "left of a save that never ended" in found[canonical("telegram:1") + ".tmp (telegram:1)"].problem
    assert list(found["telegram:2"].notes) == ["it is left of a save that never ended"]


def test_what_is_no_file_is_told_and_costs_nothing_else(tree: Tree) -> None:
    tree.session("telegram:1", user("a"))
    (tree.sessions / "dir.jsonl").mkdir()
    (tree.sessions / "loop.jsonl").symlink_to("loop.jsonl")
    (tree.sessions / "gone.jsonl").symlink_to("nowhere")
    os.mkfifo(tree.sessions / "pipe.jsonl")
    (tree.sessions / "notes.txt").write_text("x")
    found = tree.found()
    assert heard(found) == [("telegram:1", "a", True)]
    problems = {one.name: one.problem for one in found if not one.copy}
    assert problems.keys() == {"dir.jsonl", "loop.jsonl", "gone.jsonl", "pipe.jsonl"}
    assert all(problem.startswith("it cannot be read: ") for problem in problems.values())


def test_a_file_nobody_may_read_is_told(tree: Tree) -> None:
    tree.session("telegram:1", user("a")).chmod(0)
    with as_nobody(tree.sessions):
        (found,) = tree.found()
    assert found.problem == "it cannot be read: Permission denied"


def test_a_directory_nobody_may_read_is_refused(tree: Tree) -> None:
    tree.session("telegram:1", user("a"))
    home = tree.workspace.parent
    with as_nobody(home.parent):
        os.seteuid(os.getuid())
        home.chmod(0)
        os.seteuid(os.getuid() or 65_534)
        with pytest.raises(Refused, match="Permission denied"):
            tree.found()
        os.seteuid(os.getuid())
        home.chmod(0o755)


@contextmanager
def as_nobody(folder: Path) -> Iterator[None]:
    """Be somebody for whom rights hold, since root may read everything; the way to the folder is opened meanwhile."""
    if os.geteuid() != 0:
        yield
        return
    closed = [path for path in (folder, *folder.parents) if path.stat().st_mode & 0o055 != 0o055]
    modes = {path: path.stat().st_mode for path in closed}
    for path in closed:
        path.chmod(modes[path] | 0o055)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)
        for path, mode in modes.items():
            path.chmod(mode)


@pytest.mark.parametrize("key", ["slack:", "slack:C\n1", "slack:\x1b[31m", "a:\u202eb"])
def test_a_key_that_cannot_be_is_told(tree: Tree, key: str) -> None:
    tree.session(key, user("a"))
    tree.session("telegram:1", user("a"))
    found = tree.found()
    assert heard(found) == [("telegram:1", "a", True)]
    (problem,) = [one.problem for one in found if not one.copy]
    assert problem.startswith("its key cannot be one here: ")
    assert problem.isprintable()


def test_a_name_that_is_no_text_does_no_harm(tree: Tree) -> None:
    tree.sessions.mkdir(parents=True)
    path = os.fsencode(tree.sessions) + b"/slack_\xff.jsonl"
    with open(path, "wb") as file:
        file.write(lines(header(None), user("a")))
    (found,) = tree.found()
    assert found.name.encode()
    assert heard([found]) == [("slack:\ufffd", "a", True)]
