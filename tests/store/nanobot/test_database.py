"""The sessions that nanobot's latest version keeps in a database."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.keys import SessionKey
from gateway.ports.moving import imported_id
from gateway.store.nanobot.reader import NanobotSource
from tests.store.nanobot.nanobot_tree import (
    CREATED,
    CREATED_AT,
    NOW,
    UPDATED,
    UPDATED_AT,
    ZONE,
    Tree,
    assistant,
    canonical,
    user,
)

ID = "a" * 32
TABLES = """
CREATE TABLE sessions (key TEXT PRIMARY KEY, created_at TEXT, updated_at TEXT, metadata TEXT, provider_state TEXT,
    last_archived INTEGER, revision INTEGER, generation TEXT, title TEXT, preview TEXT, visible_updated_at TEXT);
CREATE TABLE messages (session_key TEXT, position INTEGER, record TEXT, PRIMARY KEY (session_key, position));
CREATE TABLE checkpoints (session_key TEXT PRIMARY KEY, record TEXT);
CREATE TABLE pending_inputs (session_key TEXT, kind TEXT, position INTEGER, record TEXT);
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / ".nanobot")


@pytest.fixture
def folder(tree: Tree) -> Path:
    folder = tree.id_folder(ID)
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(TABLES)
    return folder


def add(
    folder: Path, key: str, *records: Any, state: str | None = None, metadata: str = "{}", archived: int = 0
) -> None:
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as connection, connection:
        values = (key, CREATED, UPDATED, metadata, state, archived)
        connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, 1, 'g', '', '', NULL)", values)
        texts = [record if isinstance(record, str | bytes) else json.dumps(record) for record in records]
        connection.executemany(
            "INSERT INTO messages VALUES (?, ?, ?)", [(key, n, text) for n, text in enumerate(texts)]
        )


def test_a_session_of_a_database_is_read_like_one_of_a_file(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", user("ä"), assistant("b"), state='{"kind": "x"}', metadata='{"title": "T"}', archived=1)
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as connection, connection:
        connection.execute("INSERT INTO checkpoints VALUES ('telegram:1', '{\"a\": 1}')")
        connection.execute(
            "INSERT INTO pending_inputs VALUES ('telegram:1', 'pending_user_followups', 0, '{\"b\": 2}')"
        )
    (found,) = tree.found(tree.home)
    assert found.copy is not None
    session = found.copy.session
    assert (session.id, session.key) == (imported_id("nanobot", "telegram:1", CREATED), SessionKey("telegram", "1"))
    assert (session.created_at, session.updated_at, session.title) == (CREATED_AT, UPDATED_AT, "T")
    assert session.consolidated_through == 1
    assert session.metadata == {"runtime_checkpoint": {"a": 1}, "pending_user_followups": [{"b": 2}]}
    assert [row.content for row in found.copy.rows] == ["ä", "b"]
    assert [retired.row.extra["raw"]["state"] for retired in found.copy.attic] == [{"kind": "x"}]
    assert (found.repairs, found.notes) == ([], ())


def test_files_that_were_moved_into_it_are_not_read_again(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", user("a"), user("b"))
    tree.session("telegram:1", user("a"), folder=folder)
    tree.session("telegram:1", user("a"))
    tree.session("telegram:2", user("c"))
    found = {one.name: one for one in tree.found(tree.home)}
    assert found.keys() == {"telegram:1", "telegram:2"}
    assert len(found["telegram:1"].notes) == 1
    assert found["telegram:1"].notes[0].startswith(f"nanobot moved it here from {ID}/")


def test_what_is_not_yet_written_into_the_database_is_read_and_nothing_is_left_beside_it(
    tree: Tree, folder: Path
) -> None:
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as running:
        add(folder, "telegram:1", user("a"))
        running.execute("SELECT * FROM sessions").fetchall()
        before = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}
        assert "sessions.sqlite3-wal" in before
        source = NanobotSource(tree.home, zone=ZONE, now=NOW)
        assert source.count() == 1
        assert [found.name for found in source.sessions()] == ["telegram:1"]
        assert before == {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("-shm")}


def test_nothing_is_made_in_a_directory_with_a_database_at_rest(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", user("a"))
    before = sorted(path.name for path in folder.iterdir())
    assert [found.name for found in tree.found(folder)] == ["telegram:1"]
    assert sorted(path.name for path in folder.iterdir()) == before == [".workspace", "sessions.sqlite3"]


def test_a_record_that_is_damaged_costs_itself(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", user("a"), "{half", b"\xff\xfe", '{"role":\n"user", "content": "d"}', metadata="x")
    (found,) = tree.found(tree.home)
    assert found.copy is not None
    assert [row.content for row in found.copy.rows] == ["a", "d"]
    assert len(found.repairs) == 2


@pytest.mark.parametrize("data", [b"", b"no database, but longer than a header of one would have to be" * 20])
def test_the_old_state_beside_a_database_that_cannot_be_read_does_not_come_in_for_good(
    tree: Tree, folder: Path, data: bytes
) -> None:
    (folder / "sessions.sqlite3").write_bytes(data)
    tree.session("telegram:1", user("a"), folder=folder)
    tree.session("telegram:1", user("older still"))
    assert [(one.copy, one.problem.partition(":")[0][:40]) for one in tree.found(tree.home)] == [
        (None, "it cannot be read"),
        (None, "it is not read, for its session may be n"),
        (None, "it is not read, for its session may be n"),
    ]
    (folder / "sessions.sqlite3").unlink()
    assert [one.copy is not None for one in tree.found(tree.home)] == [True, True]


def test_a_link_to_a_database_that_is_gone_hides_what_lies_beside_it_too(tree: Tree, folder: Path) -> None:
    (folder / "sessions.sqlite3").unlink()
    (folder / "sessions.sqlite3").symlink_to(folder / "elsewhere")
    tree.session("telegram:1", user("a"), folder=folder)
    assert [one.copy for one in tree.found(tree.home)] == [None, None]


def test_the_old_state_of_the_one_session_that_a_database_does_not_give_is_not_read_instead(
    tree: Tree, folder: Path
) -> None:
    add(folder, "telegram:1", user("a"), user("new"))
    add(folder, "telegram:2", user("b"))
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as connection, connection:
        connection.execute("ALTER TABLE messages RENAME TO kept")
        connection.execute(
            "CREATE VIEW messages AS SELECT session_key, position, "
            "iif(session_key = 'telegram:1', json('{'), record) AS record FROM kept"
        )
    tree.session("telegram:1", user("a"), folder=folder)
    found = {one.name: one for one in tree.found(tree.home)}
    assert [one.copy is not None for one in found.values()] == [False, True, False]
    assert "which cannot be read" in found[f"{canonical('telegram:1')} (telegram:1)"].problem


def test_a_key_that_is_no_text_is_told(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", user("a"))
    with closing(sqlite3.connect(folder / "sessions.sqlite3")) as connection, connection:
        connection.execute("UPDATE sessions SET key = CAST(x'74656c3aff' AS TEXT)")
    (found,) = tree.found(tree.home)
    assert found.problem == "it cannot be read: its database is damaged: its key is no text"


def test_a_database_that_ends_too_early_is_told(tree: Tree, folder: Path) -> None:
    add(folder, "telegram:1", *[user("a" * 3000) for _ in range(20)])
    path = folder / "sessions.sqlite3"
    path.write_bytes(path.read_bytes()[:-20000])
    found = tree.found(tree.home)
    assert [one.copy for one in found] == [None]
    assert found[0].problem.startswith("it cannot be read: ")


def test_sessions_may_be_asked_for_by_one_thread_after_another(tree: Tree, folder: Path) -> None:
    for n in range(8):
        add(folder, f"telegram:{n}", user("a"))
    found = NanobotSource(tree.home, zone=ZONE, now=NOW).sessions()
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        assert all(pool.submit(next, found).result().copy for pool in (one, two) * 4)
