"""Failures from the field that a store of sessions must not repeat."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.domain.errors import Refused
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.replay.pipeline import Terms
from gateway.ports.sessions import NewSession, SessionQuery
from gateway.sessions import SessionManager
from tests.clock import ManualClock
from tests.stores import count_words, open_engine

KEYS = [
    "telegram:a_b", "telegram:a%3Ab", "telegram:a:b", "telegram_a:b", "telegram:A_b", "telegram:a_B", "slack:C1",
    "slack:C1:1764504000.000100", "slack-acme:C1", "telegram:-1001", "telegram:-1001:7", "api:x%25y", "chat:local",
]  # fmt: skip
"""Keys as releases spell them; a release that spells one otherwise loses the chats of everybody who has it."""
ROUTES = [
    Route("telegram", "a_b"), Route("telegram", "a:b"), Route("telegram", "a", "b"), Route("telegram_a", "b"),
    Route("telegram", "A_b"), Route("telegram", "a_B"), Route("slack", "C1"),
    Route("slack", "C1", "1764504000.000100", reply_to="1764504000.000100"), Route("slack-acme", "C1"),
    Route("telegram", "-1001"), Route("telegram", "-1001", "7", reply_to="55"), Route("api", "x%y"),
    Route("chat", "local"),
]  # fmt: skip


def said(text: str) -> list[Message]:
    return [Message(role=Role.USER, content=text)]


def test_every_release_spells_the_keys_of_the_same_chats_alike() -> None:
    """Cases D4 and D6: in and out, today and after an upgrade."""
    assert [str(route.key) for route in ROUTES] == KEYS
    assert [SessionKey.parse(text) for text in KEYS] == [route.key for route in ROUTES]


async def test_keys_that_look_alike_never_share_a_session_and_are_listed_as_they_are(tmp_path: Path) -> None:
    """Cases D1, D2 and D11."""
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        for text in KEYS:
            session = await store.sessions.open(SessionKey.parse(text), NewSession())
            await store.sessions.append(session.id, said(f"secret of {text}"))
        for text in KEYS:
            session = await store.sessions.get(SessionKey.parse(text))
            assert [row.text for row in await store.sessions.page(session.id)] == [f"secret of {text}"]
        listed = (await store.sessions.list(SessionQuery(limit=100))).sessions
        assert sorted(str(session.key) for session in listed) == sorted(KEYS)


@pytest.mark.parametrize("key", ["slack:D1", "slack:C1", "slack:C1:17.1", "telegram:-1001:7"])
async def test_a_chat_is_remembered_over_a_restart(tmp_path: Path, key: str) -> None:
    """Case C12, for a direct chat, a channel, a thread and a topic."""
    for text in ("first", "second"):
        async with open_engine("sqlite", tmp_path, ManualClock()) as store:
            manager = SessionManager(store.sessions, count_words)
            session = await manager.open(SessionKey.parse(key))
            await manager.append(session.id, said(text))
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        manager = SessionManager(store.sessions, count_words)
        replay = await manager.replay((await manager.get(SessionKey.parse(key))).id, Terms(budget=1000))
        assert [message.text for message in replay.messages] == ["first\n\nsecond"]


async def test_fifty_sessions_that_save_at_once_do_not_hold_each_other(tmp_path: Path) -> None:
    """Case C11."""
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        sessions = [await store.sessions.open(SessionKey("slack", f"D{n}"), NewSession()) for n in range(50)]
        await asyncio.gather(*(store.sessions.append(s.id, said(str(n))) for s in sessions for n in range(5)))
        for session in sessions:
            assert (await store.sessions.get(session.id)).message_count == 5


@pytest.mark.parametrize(
    "left", [b"", b"\n", bytes(100), bytes(9000)], ids=["empty", "blank", "zeros", "pages of zeros"]
)
async def test_a_file_that_a_crash_left_empty_is_a_new_store(tmp_path: Path, left: bytes) -> None:
    """Case C2: what a crash left of a file must not keep the gateway from starting."""
    (tmp_path / "store.db").write_bytes(left)
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(SessionKey("slack", "D1"), NewSession())
        await store.sessions.append(session.id, said("hello"))
        assert [row.text for row in await store.sessions.page(session.id)] == ["hello"]


async def test_a_library_user_needs_nothing_but_the_manager(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        manager = SessionManager(store.sessions, count_words)
        session = await manager.open(SessionKey("api", "42"))
        for n in range(4):
            question, answer = f"q{n}", Message(role=Role.ASSISTANT, content=f"a{n}")
            await manager.append(session.id, [*said(question), answer])
        fork = await manager.fork_before_user(session.id, 2, SessionKey("api", "43"))
        assert [row.text for row in await manager.rows(fork.id)] == ["q0", "a0", "q1", "a1"]
        with pytest.raises(Refused, match="from 0 to 4"):
            await manager.fork_before_user(session.id, 5, SessionKey("api", "44"))
        result = await manager.retain_recent_legal_suffix(session.id, 3)
        assert [row.text for row in await manager.rows(session.id)] == ["q3", "a3"]
        assert [row.text for row in await manager.attic(session.id)] == [row.text for row in result.dropped]
        assert (await manager.rename(session.id, "  My\nchat ")).title == "My chat"
        assert (await manager.pin(session.id)).pinned
        assert (await manager.archive(session.id)).archived
        assert await manager.clear(session.id) == 2
        assert await manager.rows(session.id) == ()
        assert len(await manager.attic(session.id)) == 8
        assert await manager.close(session.key) is not None
        assert await manager.delete(session.id)
