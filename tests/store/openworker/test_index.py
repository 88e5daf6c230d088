"""Importing from openworker an index that is missing, damaged or in use, and is not changed."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.errors import Refused
from gateway.domain.titles import TitleSource
from gateway.store.openworker import index as openworker_index
from gateway.store.openworker.reader import OpenworkerSource
from tests.store.openworker.openworker_tree import (
    CONVERSATION,
    NOW,
    OLDEST,
    ONE,
    TWO,
    Tree,
    contents,
    copy_of,
    read,
    untouched,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "coworker")
    tree.session(ONE, title="Mine", renamed=1)
    return tree


@pytest.mark.parametrize("data", [b"", b"this is no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_without_a_whole_index_the_files_are_read_alone(tree: Tree, data: bytes) -> None:
    tree.index.write_bytes(data)
    index, found = untouched(tree)
    assert (index.name, index.copy) == ("coworker.db", None)
    assert "coworker.db" in index.problem
    assert contents(found)[-1] == "Thanks"
    assert "coworker.db" in found.repairs[0]
    assert found.repairs[0].endswith("; its header is made of its rows")
    assert (copy_of(found).session.title_source, copy_of(found).session.id) == (TitleSource.NONE, ONE)


def test_without_any_index_the_files_are_read_alone(tree: Tree) -> None:
    tree.index.unlink()
    (found,) = untouched(tree)
    assert list(found.repairs) == ["there is no coworker.db; its header is made of its rows"]
    assert copy_of(found).session.updated_at == copy_of(found).rows[5].created_at


def test_an_index_that_is_a_folder_is_a_damaged_one(tree: Tree) -> None:
    tree.index.unlink()
    tree.index.mkdir()
    assert [found.name for found in untouched(tree)] == ["coworker.db", ONE]


def test_an_index_that_may_not_be_read_is_refused(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_: object) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(openworker_index, "_is_in_flux", deny)
    with pytest.raises(Refused, match="Permission denied"):
        read(tree.directory)


def test_a_damaged_page_costs_the_sessions_on_it(tree: Tree) -> None:
    tree.rows([f"s{n:03}" for n in range(300)], title="T" * 50, origin_label="L" * 50)
    whole = tree.index.read_bytes()
    kept = []
    for start in range(4 * 4096, len(whole), 4096):
        tree.index.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        first, *others = untouched(tree)
        assert (first.name == "coworker.db") == ("damaged" in first.problem)
        found = {one.name: one for one in [first, *others] if one.copy}
        assert len(contents(found[ONE])) == 7
        kept.append(len(found))
    assert 250 < min(kept) < 300
    assert max(kept) == 301


def test_rows_in_a_damaged_part_of_the_index_are_a_problem_of_their_session(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "old", OLDEST.replace("messages TEXT,", "").replace("\n)", ", messages TEXT)"), alters=False)
    tree.row(ONE, messages=[{"role": "user", "content": "x" * 100_000}])
    with tree.index.open("r+b") as file:
        file.seek(-10 * 4096, 2)
        file.write(b"\xff" * 4096)
    (found,) = untouched(tree)
    assert (found.name, found.copy, "malformed" in found.problem) == (ONE, None, True)


def test_an_index_of_no_sessions_is_a_whole_one(tmp_path: Path) -> None:
    assert untouched(Tree(tmp_path / "new")) == []


def test_an_index_without_the_table_is_a_damaged_one(tree: Tree) -> None:
    with closing(sqlite3.connect(tree.index)) as db:
        db.execute("DROP TABLE sessions")
    assert [found.problem for found in untouched(tree)] == ["coworker.db has no table of sessions", ""]


def run(code: str, path: Path) -> subprocess.Popen[str]:
    """Start another process that works on the index until it is told to end; return once it has begun."""
    script = f"import sqlite3, sys, os\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n{code}\n"
    script += "print('ready', flush=True)\nsys.stdin.readline()\nos._exit(0)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=20)


SPILL = (
    "db.execute('PRAGMA cache_size=1'); db.execute('BEGIN IMMEDIATE'); db.execute(\"UPDATE sessions SET title='no'\")"
)
IN_USE = {
    "a lock": "db.execute('BEGIN EXCLUSIVE')",
    "a transaction": SPILL,
    "a write-ahead log": "db.execute('PRAGMA journal_mode=WAL'); db.execute(\"UPDATE sessions SET title='Mine'\")",
}


@pytest.mark.parametrize("code", IN_USE.values(), ids=IN_USE)
def test_an_index_in_use_is_read_as_it_was_last_complete(
    tree: Tree, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openworker_index, "_WAIT_SECONDS", 0.1)
    tree.rows([f"s{n}" for n in range(300)], title="Mine", origin_label="x" * 200)
    process = run(code, tree.index)
    try:
        found = untouched(tree)
    finally:
        end(process)
    assert len(found) == 301
    assert {copy_of(one).session.title for one in found} == {"Mine"}


def test_a_writer_that_died_leaves_a_journal_that_is_undone_in_a_copy_alone(tree: Tree) -> None:
    tree.rows([f"s{n}" for n in range(300)], title="Mine", origin_label="x" * 200)
    end(run(SPILL, tree.index))
    assert Path(f"{tree.index}-journal").stat().st_size > 0
    assert {copy_of(one).session.title for one in untouched(tree)} == {"Mine"}


def test_a_journal_that_was_not_there_before_is_not_undone_in_place(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.rows([f"s{n}" for n in range(300)], title="Mine", origin_label="x" * 200)
    end(run(SPILL, tree.index))
    monkeypatch.setattr(openworker_index, "_is_in_flux", lambda _: False)
    assert {copy_of(one).session.title for one in untouched(tree)} == {"Mine"}


def test_a_log_without_its_shared_memory_is_read(tree: Tree) -> None:
    end(run(IN_USE["a write-ahead log"].replace("Mine", "From the log"), tree.index))
    Path(f"{tree.index}-shm").unlink()
    (found,) = untouched(tree)
    assert copy_of(found).session.title == "From the log"


def test_another_can_write_while_the_sessions_are_read(tree: Tree) -> None:
    tree.row(TWO, messages=CONVERSATION)
    sessions = OpenworkerSource(tree.directory, now=NOW).sessions()
    next(sessions)
    with closing(sqlite3.connect(tree.index, timeout=0)) as other, other:
        other.execute("UPDATE sessions SET title = 'later'")
    assert len(contents(next(sessions))) == 7


def test_copies_are_not_left_behind(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with closing(sqlite3.connect(tree.index)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    sessions = OpenworkerSource(tree.directory, now=NOW).sessions()
    next(sessions)
    assert list(folder.iterdir())
    sessions.close()  # type: ignore[attr-defined]
    assert list(folder.iterdir()) == []


def test_a_copy_is_made_again_when_the_file_changed_meanwhile(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(tree.index)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    copy = shutil.copyfile
    copied: list[str] = []

    def copy_and_change(source: str, target: Path) -> None:
        copy(source, target)
        if not copied:
            tree.row(TWO, title="late")
        copied.append(source)

    monkeypatch.setattr(shutil, "copyfile", copy_and_change)
    assert [copy_of(found).session.title for found in read(tree.directory)] == ["Mine", "late"]
