"""A fork is named after what people can see."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from tests.clock import ManualClock
from tests.stores import message, open_engine


async def test_a_fork_shows_nothing_of_a_hidden_first_message_in_its_title_or_preview(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        id = await store.turns.accept(message("my secret", 1), NewSession())
        assert id is not None
        await store.turns.accept(message("plan a trip", 2), NewSession())
        lease = await store.leases.acquire(session_lease(id), "me", timedelta(seconds=30))
        assert lease is not None
        await store.turns.begin(id, lease)
        await store.sessions.mark(id, [1], Mark.DELETED)
        fork = await store.sessions.fork(id, 3, SessionKey("slack", "D2"))
        assert (fork.title, fork.preview, fork.message_count) == ("plan a trip", "plan a trip", 2)
