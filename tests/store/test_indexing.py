"""The full-text index is as the rows are, whatever came and went within one commit."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.titles import TitleSource
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store.sqlite.connection import connect
from gateway.store.sqlite.salvage import salvage
from tests.clock import ManualClock
from tests.stores import NOON, ROUTE, message, open_engine

PIECES = [
    "漢字",
    "かな",
    "がな",
    "กินข้าว",
    "한국",
    "deploy",
    "Größe",
    "cafe\u0301",
    "\u0301",
    "❤️",
    "😀",
    " ",
    "。",
    "葛\U000e0100",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=6).map("".join)
VERBS = st.sampled_from(["append", "retire", "clear", "fork", "delete", "title"])


def check(connection: sqlite3.Connection) -> None:
    """Raise unless the indexes are whole and hold what the views say, neither more nor less."""
    for index in ("messages_fts", "titles_fts"):
        for depth in (0, 1):
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', {depth})")


def words_in(path: Path) -> set[str]:
    """Return the words of both indexes."""
    found: set[str] = set()
    with closing(connect(path)) as connection:
        check(connection)
        for index in ("messages_fts", "titles_fts"):
            connection.execute(f"CREATE VIRTUAL TABLE temp.{index}_words USING fts5vocab (main, {index}, row)")
            found.update(row["term"] for row in connection.execute(f"SELECT term FROM temp.{index}_words"))
    return found


@given(st.lists(st.tuples(VERBS, TEXTS), max_size=12))
@settings(max_examples=60, deadline=None)
def test_whatever_comes_and_goes_the_indexes_are_whole_and_forget_what_is_gone(steps: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_take(Path(folder), steps))
        assert words_in(Path(folder) / "store.db") == set()


async def _take(folder: Path, steps: list[tuple[str, str]]) -> None:
    async with open_engine("sqlite", folder, ManualClock()) as store:
        ids: list[str] = []
        for number, (verb, text) in enumerate(steps):
            session = await store.sessions.open(ROUTE.key, NewSession())
            ids.append(session.id)
            if verb == "append":
                rows = [Message(role=Role.USER, content=part) for part in (text, None, text * 2)]
                await store.sessions.append(session.id, rows)
            elif verb == "retire":
                await store.sessions.retire(session.id, [1, 3], "test")
            elif verb == "clear":
                await store.sessions.clear(session.id)
            elif verb == "fork":
                ids.append((await store.sessions.fork(session.id, 99, SessionKey("slack", f"F{number}"))).id)
            elif verb == "title":
                await store.sessions.set_title(session.id, text, TitleSource.EDITED)
            else:
                await store.sessions.delete(session.id)
            with closing(connect(folder / "store.db")) as connection:
                check(connection)
        for id in set(ids):
            await store.sessions.delete(id)


async def test_a_mended_file_is_searched_like_the_one_it_was(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        await store.sessions.append(session.id, [Message(role=Role.USER, content=text) for text in PIECES])
        await store.sessions.set_title(session.id, "東京 deploy", TitleSource.EDITED)
    words = words_in(tmp_path / "store.db")
    assert {"漢", "字", "ก", "\u0e34", "deploy", "große", "cafe", "東"} <= words
    salvage(tmp_path / "store.db", NOON)
    assert words_in(tmp_path / "store.db") == words


async def test_rebuilding_the_indexes_makes_them_as_they_were(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        await store.sessions.append(session.id, [Message(role=Role.USER, content=text) for text in PIECES])
    words = words_in(tmp_path / "store.db")
    with closing(connect(tmp_path / "store.db")) as connection:
        for index in ("messages_fts", "titles_fts"):
            connection.execute(f"INSERT INTO {index} ({index}) VALUES ('rebuild')")
    assert words_in(tmp_path / "store.db") == words


async def test_a_text_that_is_damaged_is_indexed_and_goes_and_keeps_no_other_from_being_kept(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        with closing(connect(tmp_path / "store.db")) as connection:
            for seq, damaged in enumerate((b"\xff\xe6\xbc damaged", b"\x00 damaged", b""), start=1):
                connection.execute(
                    "INSERT INTO messages (session_id, seq, v, role, kind, content, tokens, created_at) "
                    "VALUES (?, ?, 1, 'user', 'chat', CAST(? AS TEXT), 1, 0)",
                    (session.id, seq, damaged),
                )
            connection.execute("UPDATE sessions SET last_seq = 3, message_count = 3")
        await store.sessions.append(session.id, [Message(role=Role.USER, content="漢字")])
        assert [found.seq for found in await store.sessions.search("字")] == [4]
        assert [found.seq for found in await store.sessions.search("damaged")][:1] in ([1], [2])
        await store.sessions.delete(session.id)
    assert words_in(tmp_path / "store.db") == set()


async def test_rows_added_and_moved_away_within_one_commit_leave_no_trace_in_the_index(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        id = await store.turns.accept(message("hello", 1), NewSession())
        assert id is not None
        lease = await store.leases.acquire(session_lease(id), "me", timedelta(seconds=30))
        assert lease is not None
        turn = await store.turns.begin(id, lease)
        assert turn is not None

        async def add_and_move(number: int) -> None:
            row = Message(role=Role.ASSISTANT, content=f"word{number}" if number % 3 else None, tokens=1)
            await store.turns.append_round(turn, lease, [row], None)
            if number % 2:
                newest = (await store.sessions.page(id, limit=1))[-1]
                await store.sessions.retire(id, [newest.seq], "test")

        await asyncio.gather(*(add_and_move(number) for number in range(60)))
        rows = await store.sessions.page(id, limit=100)
        for number in range(60):
            found = [one.seq for one in await store.sessions.search(f"word{number}")]
            assert found == [row.seq for row in rows if row.text == f"word{number}"]
    with closing(connect(tmp_path / "store.db")) as connection:
        check(connection)
