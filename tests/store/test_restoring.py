"""Restoring a long session in parts: whole or not at all for whoever looks, and others write meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message, Role
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.media import MediaMeta
from gateway.ports.sessions import NewSession, Restored, Retired, SessionCopy, SessionQuery
from gateway.store import Store, moving
from tests.clock import ManualClock
from tests.media.rig import file_media
from tests.stores import NOON, message, open_engine

KEY = SessionKey("slack", "D1")
ROWS = [
    Message(role=Role.USER, content=f"words {seq}", seq=seq, tokens=2, created_at=NOON, marks=frozenset({Mark.UNDONE}))
    for seq in range(10, 60)
]
OLD = Message(role=Role.USER, content="old", seq=1, tokens=1, created_at=NOON, marks=frozenset({Mark.DELETED}))
LONG = SessionCopy(
    session=Session(
        id="s1",
        key=KEY,
        created_at=NOON,
        updated_at=NOON + timedelta(days=1),
        title="Plans",
        title_source=TitleSource.EDITED,
        message_count=50,
        revision=3,
    ),
    rows=tuple(ROWS),
    attic=tuple(Retired(row=OLD, reason="retention", moved_at=NOON) for _ in range(9)),
)


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(moving, "CHUNK", 7)
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        yield store


async def cut_off(store: Store) -> None:
    """Leave what a process leaves that is killed in the middle of a restore."""
    restoring = asyncio.create_task(store.sessions.restore(LONG))
    await asyncio.sleep(0.05)
    restoring.cancel()
    await asyncio.wait({restoring})


async def test_a_long_session_is_the_same_in_every_field(store: Store) -> None:
    assert await store.sessions.restore(LONG) is Restored.ADDED
    assert await store.sessions.copy("s1") == LONG
    assert [found.session.id for found in await store.sessions.search("plans")] == ["s1"]
    assert await store.sessions.restore(LONG) is Restored.KNOWN


async def test_others_write_while_a_long_session_comes_in_and_nobody_sees_half_of_it(store: Store) -> None:
    restoring = asyncio.create_task(store.sessions.restore(LONG))
    seen = 0
    while not restoring.done():
        assert await store.turns.accept(message("hi", seen), NewSession()) is not None
        if not (await store.sessions.list(SessionQuery())).sessions[1:]:
            with pytest.raises(NotFound):
                await store.sessions.get("s1")
            seen += 1
        await asyncio.sleep(0.01)
    assert seen > 3
    # Its chat was used meanwhile, and goes on with what it has.
    assert await restoring is Restored.ADDED_CLOSED
    assert (await store.sessions.get("s1")).closed_at is not None


async def test_what_a_killed_restore_left_is_replaced_by_the_next_one(store: Store, tmp_path: Path) -> None:
    await cut_off(store)
    assert (await store.sessions.list(SessionQuery())).sessions == []
    assert await store.sessions.would_restore(LONG) is Restored.ADDED
    assert await store.sessions.restore(LONG) is Restored.ADDED
    assert await store.sessions.copy("s1") == LONG


async def test_files_are_kept_for_a_session_whose_restore_was_killed(store: Store, tmp_path: Path) -> None:
    async def picture() -> AsyncIterator[bytes]:
        yield b"picture"

    await cut_off(store)
    await store.sessions.discard_unfinished("s1")
    media = file_media(tmp_path, store)
    kept = await media.put(picture(), MediaMeta(session_id="s1", kind="image"))
    assert b"".join([piece async for piece in media.open(kept.ref)]) == b"picture"


async def test_two_imports_of_one_long_session_do_not_mix_it(store: Store) -> None:
    first = asyncio.create_task(store.sessions.restore(LONG))
    await asyncio.sleep(0.05)
    assert await store.sessions.restore(LONG) is Restored.ADDED
    with pytest.raises(Refused, match="another import"):
        await first
    assert await store.sessions.copy("s1") == LONG


async def test_discarding_leaves_a_session_that_is_there_alone(store: Store) -> None:
    await store.sessions.restore(LONG)
    await store.sessions.discard_unfinished("s1")
    await store.sessions.discard_unfinished("nobody")
    assert await store.sessions.copy("s1") == LONG
