"""SQLite: one writer with group commit, readers beside it, a file that is ours, and nothing lost when it dies."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.errors import ConfigError, Refused, Unavailable
from gateway.store import waiting
from gateway.store.database import Transaction
from gateway.store.opening import sqlite_path
from gateway.store.sqlite.connection import connect
from gateway.store.sqlite.database import SqliteDatabase
from gateway.store.sqlite.migrate import prepare
from tests.acceptance.gateway import REPOSITORY

KILLS, KILLS_PROVING = 3, 40


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    path = tmp_path / "test.db"
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT UNIQUE)")
    database = SqliteDatabase(path)
    yield database
    await database.close()


def insert(text: str) -> object:
    return lambda tx: tx.execute("INSERT INTO notes (text) VALUES (?)", text)


async def notes(database: SqliteDatabase) -> list[str]:
    return await database.read(lambda tx: [row["text"] for row in tx.all("SELECT text FROM notes ORDER BY id")])


async def test_writes_that_wait_together_are_kept_in_the_order_they_came(database: SqliteDatabase) -> None:
    await asyncio.gather(*(database.write(insert(str(n))) for n in range(500)))  # type: ignore[arg-type]
    assert await notes(database) == [str(n) for n in range(500)]


async def test_a_write_that_fails_costs_only_itself(database: SqliteDatabase) -> None:
    results = await asyncio.gather(
        *(database.write(insert(text)) for text in ("a", "b", "a", "c")),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    assert isinstance(results[2], sqlite3.IntegrityError)
    assert await notes(database) == ["a", "b", "c"]


async def test_a_write_that_fails_halfway_leaves_nothing_of_itself(database: SqliteDatabase) -> None:
    def half(tx: Transaction) -> None:
        tx.execute("INSERT INTO notes (text) VALUES ('half')")
        raise KeyError("no")

    for others in (0, 5):
        writes = [database.write(half), *(database.write(insert(f"{others}-{n}")) for n in range(others))]  # type: ignore[arg-type]
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert isinstance(results[0], KeyError)
    assert await notes(database) == [f"5-{n}" for n in range(5)]


async def test_a_batch_whose_transaction_was_undone_is_tried_again_one_by_one(database: SqliteDatabase) -> None:
    """What a full disk does: SQLite undoes the whole transaction in the middle of somebody's work."""
    attempts = 0

    def undone_once(tx: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            tx.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")
        tx.execute("INSERT INTO notes (text) VALUES ('late')")

    gate = threading.Event()
    first = database.write(lambda tx: gate.wait(30))
    rest = [database.write(insert("a")), database.write(undone_once), database.write(insert("b"))]  # type: ignore[arg-type]
    pending = asyncio.gather(first, *rest)
    await asyncio.sleep(0)
    gate.set()
    await pending
    assert await notes(database) == ["a", "late", "b"]
    assert attempts == 2


async def test_nothing_runs_on_the_event_loops_thread(database: SqliteDatabase) -> None:
    here = threading.get_ident()
    assert await database.write(lambda tx: threading.get_ident()) != here
    assert await database.read(lambda tx: threading.get_ident()) != here


async def test_a_reader_cannot_write(database: SqliteDatabase) -> None:
    with pytest.raises(Unavailable):
        await database.read(insert("x"))  # type: ignore[arg-type]
    assert await notes(database) == []


async def test_cancelling_a_wait_does_not_undo_the_write(database: SqliteDatabase) -> None:
    gate = threading.Event()
    first = asyncio.create_task(database.write(lambda tx: gate.wait(30)))
    second = asyncio.create_task(database.write(insert("kept")))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await first
    await database.write(insert("last"))  # type: ignore[arg-type]
    assert await notes(database) == ["kept", "last"]


async def test_closing_finishes_what_was_begun_and_refuses_what_comes_later(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    prepare(path)
    database = SqliteDatabase(path)
    lease = "INSERT INTO leases VALUES (?, 'me', 1, 1)"
    writes = [asyncio.ensure_future(database.write(lambda tx, n=n: tx.execute(lease, str(n)))) for n in range(50)]  # type: ignore[misc]
    await asyncio.sleep(0)
    await database.close()
    assert await asyncio.gather(*writes) == [1] * 50
    with pytest.raises(RuntimeError):
        await database.write(lambda tx: None)


async def test_two_processes_may_write_to_one_file(database: SqliteDatabase, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from gateway.store.sqlite.connection import connect\n"
        "c = connect(Path(sys.argv[1]))\n"
        "for n in range(300): c.execute('INSERT INTO notes (text) VALUES (?)', (f'other-{n}',))\n"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path / "test.db"), cwd=REPOSITORY
    )
    for n in range(300):
        await database.write(insert(f"ours-{n}"))  # type: ignore[arg-type]
    assert await other.wait() == 0
    kept = await notes(database)
    for name in ("ours", "other"):
        assert [text for text in kept if text.startswith(name)] == [f"{name}-{n}" for n in range(300)]


async def test_what_may_heal_is_told_as_unavailable_and_a_fault_of_ours_as_itself(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with closing(connect(tmp_path / "test.db")) as other:
        other.execute("PRAGMA busy_timeout=0")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="locked"):
            await database.write(insert("x"))  # type: ignore[arg-type]
        other.execute("ROLLBACK")
    await database.write(insert("x"))  # type: ignore[arg-type]
    with pytest.raises(sqlite3.IntegrityError):
        await database.write(insert("x"))  # type: ignore[arg-type]


async def test_a_writer_that_cannot_start_tells_everybody_instead_of_keeping_them_waiting(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "no" / "such" / "folder" / "test.db")
    for _ in range(2):
        with pytest.raises(Unavailable, match="the store's writer has ended"):
            await asyncio.wait_for(database.write(insert("x")), 30)  # type: ignore[arg-type]
    assert database.fault is not None
    await database.close()


async def test_nothing_is_accepted_into_a_file_that_was_removed_while_it_was_in_use(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    database = SqliteDatabase(path)
    await database.write(lambda tx: tx.execute("INSERT INTO leases VALUES ('a', 'me', 1, 1)"))
    assert database.fault is None
    path.rename(tmp_path / "elsewhere.db")
    for _ in range(2):
        with pytest.raises(Unavailable, match="removed or replaced"):
            await database.write(lambda tx: tx.execute("INSERT INTO leases VALUES ('b', 'me', 1, 1)"))
    assert database.fault is not None
    (tmp_path / "elsewhere.db").rename(path)
    await database.write(lambda tx: tx.execute("INSERT INTO leases VALUES ('b', 'me', 1, 1)"))
    assert database.fault is None
    await database.close()


def test_a_sweep_reads_no_turn_and_no_event_that_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    with closing(connect(path)) as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN " + waiting.DUE.format(channels="?"), ("a", 0, "a", 0, 0, 10)
        ).fetchall()
    steps = [row["detail"] for row in plan]
    assert any("inbox_due" in step for step in steps)
    assert sum("turns_unfinished" in step for step in steps) == 2
    assert not [
        step
        for step in steps
        if step.startswith("SCAN") and step.split()[1] in ("turns", "inbox", "input") and "USING" not in step
    ]


def test_a_new_file_is_made_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "store.db"
    prepare(path)
    assert path.stat().st_mode & 0o077 == 0
    prepare(path)


def test_a_newer_schema_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA user_version=9999")
    with pytest.raises(Refused, match="written by a newer Trunkline: its schema is 9999, this release knows up to 1"):
        prepare(path)


def test_a_file_that_needs_no_migration_is_opened_while_somebody_writes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    with closing(connect(path)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        prepare(path)
        assert time.monotonic() - began < 5


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(Refused, match="another program's database"):
        prepare(path)
    # Also how it keeps its journal is its own business.
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["other.db"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary, " * 500)
    with pytest.raises(Refused, match="something else"):
        prepare(path)
    assert path.read_text().startswith("dear diary")


def test_a_place_that_cannot_be_written_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot open the database"):
        prepare(tmp_path / "file" / "store.db")


@pytest.mark.parametrize("url", ["", "sqlite:///", "sqlite:///:memory:", "mysql://u:secret@h/db", "/plain/path"])
def test_a_url_no_store_answers_to_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"store\.url: expected sqlite:///PATH") as caught:
        sqlite_path(url)
    assert "secret" not in str(caught.value)


WRITER = """
import asyncio, sys
from pathlib import Path
from gateway.store.sqlite.database import SqliteDatabase
from gateway.store.sqlite.migrate import prepare

async def main():
    path = Path(sys.argv[1])
    prepare(path)
    database = SqliteDatabase(path)
    async def one(n):
        await database.write(lambda tx: tx.execute("INSERT INTO leases VALUES (?, 'me', 1, 1)", f"{sys.argv[2]}-{n}"))
        print(n, flush=True)
    n = 0
    while True:
        await asyncio.gather(*(one(n + k) for k in range(20)))
        n += 20

asyncio.run(main())
"""


def test_a_killed_writer_loses_nothing_it_has_acknowledged(tmp_path: Path, proving: bool) -> None:
    path = tmp_path / "store.db"
    for kill in range(KILLS_PROVING if proving else KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(kill)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
        ) as process:
            assert process.stdout is not None
            acknowledged = [process.stdout.readline().strip() for _ in range(100 + 37 * kill)]
            process.kill()
            acknowledged += process.stdout.read().split()
        with closing(connect(path)) as connection:
            kept = {row[0] for row in connection.execute("SELECT name FROM leases")}
            assert {f"{kill}-{n}" for n in acknowledged if n} <= kept
            assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
