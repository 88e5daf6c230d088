"""A damaged file: the rest loads, the damaged one is kept, and the process starts."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from loguru import logger

from gateway.domain.errors import Unavailable
from gateway.domain.message import Message, Role
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession, SessionQuery
from gateway.store import open_store
from gateway.store.sqlite.salvage import is_damaged, mend_if_damaged, salvage
from tests.clock import ManualClock
from tests.stores import ROUTE, count_words, id_maker, message, open_engine

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
PAGE = 4096


async def fill(folder: Path, chats: int = 20, rows: int = 60) -> None:
    """Make a store of many chats with many rows."""
    async with open_engine("sqlite", folder, ManualClock()) as store:
        for chat in range(chats):
            route = type(ROUTE)("slack", f"D{chat}")
            session_id = await store.turns.accept(message(f"question of {chat}", chat, route=route), NewSession())
            assert session_id is not None
            lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
            assert lease is not None
            turn = await store.turns.begin(session_id, lease)
            assert turn is not None
            said = [Message(role=Role.ASSISTANT, content=f"words {chat} {n} " * 20) for n in range(rows)]
            await store.turns.finish(turn, lease, said, [], None)


def spoil(path: Path, seed: int, pages: int) -> None:
    """Overwrite pages in the middle of the file, as a failing disk does."""
    chance = random.Random(seed)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    with path.open("r+b") as file:
        for _ in range(pages):
            # The first pages hold the schema; a file without it is no database any more.
            file.seek(chance.randrange(60, size // PAGE) * PAGE)
            file.write(chance.randbytes(PAGE))


@pytest.mark.parametrize("seed", range(6))
async def test_the_rest_of_a_damaged_file_loads_and_the_damaged_one_is_kept(tmp_path: Path, seed: int) -> None:
    await fill(tmp_path)
    path = tmp_path / "store.db"
    spoil(path, seed, pages=3)
    lines: list[str] = []
    sink = logger.add(lines.append, level="WARNING", format="{message} {extra}")
    assert is_damaged(path)
    saved = {one.table: one for one in salvage(path, NOW)}
    logger.remove(sink)
    assert len(lines) == 1
    assert path.with_name("store.db.damaged-20261130T120000").exists()
    assert saved["messages"].kept > 900
    assert not is_damaged(path)
    async with open_engine("sqlite", tmp_path, ManualClock(NOW + timedelta(days=1))) as store:
        sessions = (await store.sessions.list(SessionQuery(limit=100))).sessions
        assert len(sessions) >= 10
        for session in sessions:
            page = await store.sessions.page(session.id, limit=500)
            assert len(page) == session.message_count
        assert await store.turns.accept(message("and now?", 999, route=type(ROUTE)("slack", "D0")), NewSession())


async def test_a_file_that_is_whole_or_not_ours_or_in_use_is_left_alone(tmp_path: Path) -> None:
    await fill(tmp_path, chats=2, rows=3)
    path = tmp_path / "store.db"
    assert not is_damaged(path)
    assert not is_damaged(tmp_path / "none.db")
    (tmp_path / "diary.txt").write_text("dear diary " * 1000)
    assert not is_damaged(tmp_path / "diary.txt")
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version=9999")
        assert not is_damaged(path)


async def test_a_table_of_which_nothing_can_be_read_costs_that_table(tmp_path: Path) -> None:
    await fill(tmp_path, chats=3, rows=3)
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'turns'").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    assert is_damaged(path)
    saved = {one.table: one for one in salvage(path, NOW)}
    assert (saved["turns"].kept, saved["messages"].kept) == (0, 12)


async def test_rows_whose_header_is_lost_get_one_and_what_waits_is_answered(tmp_path: Path) -> None:
    await fill(tmp_path, chats=2, rows=3)
    path = tmp_path / "store.db"
    async with open_engine("sqlite", tmp_path, ManualClock(), id_maker("late")) as store:
        waiting = await store.turns.accept(message("waits", 77, route=type(ROUTE)("slack", "D9")), NewSession())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        connection.execute("DELETE FROM sessions")
        connection.commit()
    salvage(path, NOW)
    async with open_engine("sqlite", tmp_path, ManualClock(NOW + timedelta(days=1)), id_maker("new")) as store:
        sessions = (await store.sessions.list(SessionQuery())).sessions
        assert sorted(session.key.channel for session in sessions) == ["recovered", "recovered", "slack"]
        assert [session.message_count for session in sessions if session.key.channel == "recovered"] == [4, 4]
        assert await store.turns.due(["slack"], 5) == [waiting]


async def test_a_mending_that_fails_leaves_everything_and_can_be_tried_again(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / "store.db"
    spoil(path, seed=1, pages=3)
    (tmp_path / "store.db.mending").mkdir()
    with pytest.raises(Unavailable, match="cannot be mended now"):
        mend_if_damaged(path, NOW)
    assert is_damaged(path)
    (tmp_path / "store.db.mending").rmdir()
    (tmp_path / "store.db.mending").write_bytes(b"left by a process that was killed")
    mend_if_damaged(path, NOW)
    assert not is_damaged(path)


async def test_a_gateway_that_opens_a_damaged_store_mends_it_and_goes_on(tmp_path: Path) -> None:
    await fill(tmp_path)
    path = tmp_path / "store.db"
    spoil(path, seed=1, pages=3)
    url = f"sqlite:///{path}"
    async with open_store(url, clock=ManualClock(NOW), make_id=id_maker("new"), count=count_words, mend=True) as store:
        assert len((await store.sessions.list(SessionQuery(limit=100))).sessions) >= 10
        assert await store.sessions.search("words") != []
    assert any(name.startswith("store.db.damaged-") for name in os.listdir(tmp_path))
