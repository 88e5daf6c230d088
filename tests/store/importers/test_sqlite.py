"""Copies of a database in use: whole, and as it was last complete."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway.store.importers import sqlite
from gateway.store.importers.sqlite import copied, has_journals


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "used.db")) as connection, connection:
        connection.execute("CREATE TABLE notes (text TEXT)")
        connection.executemany("INSERT INTO notes VALUES (?)", [("before" * 100,)] * 500)
    return tmp_path / "used.db"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "copy").mkdir()
    return tmp_path / "copy"


def notes(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {text[:6] for (text,) in connection.execute("SELECT text FROM notes")}


def test_what_a_transaction_has_written_so_far_is_undone_in_the_copy(path: Path, folder: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size = 1")
        connection.execute("BEGIN")
        connection.execute("UPDATE notes SET text = 'during' || text")
        assert has_journals(path)
        assert notes(copied(path, folder)) == {"before"}
        connection.execute("ROLLBACK")
    assert not has_journals(path)


def test_what_is_only_in_the_log_is_in_the_copy(path: Path, folder: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("UPDATE notes SET text = 'logged'")
        assert notes(copied(path, folder)) == {"logged"}


def test_a_log_that_goes_into_the_file_while_it_is_copied_is_not_missed(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copyfile
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("UPDATE notes SET text = 'logged'")

        def copy_and_end(source: str, target: Path) -> None:
            copy(source, target)
            connection.close()

        monkeypatch.setattr(shutil, "copyfile", copy_and_end)
        # However restless the file is, so that no copy is the last one that nothing came between.
        monkeypatch.setattr(sqlite, "_COPIES", 1)
        assert notes(copied(path, folder)) == {"logged"}
