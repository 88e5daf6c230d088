"""The full-text index is as the rows are, whatever came and went within one commit."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from gateway.domain.message import Message, Role
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store.sqlite.connection import connect
from tests.clock import ManualClock
from tests.stores import message, open_engine


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
        connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
