"""What every store of sessions promises of whole sessions that come and go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession, Restored, Retired, SessionCopy, SessionQuery
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ENGINES, count_words, id_maker, message, open_engine

KEY = SessionKey("slack", "D1")
OTHER = SessionKey("telegram", "42", "7")
LONG_AGO = datetime(2020, 2, 29, 12, 30, 1, 234567, tzinfo=UTC)

ROWS = (
    Message(role=Role.USER, content="please deploy", seq=3, tokens=9, created_at=LONG_AGO, sender=Sender(id="U1")),
    Message(
        role=Role.ASSISTANT,
        tool_calls=(ToolCall(id="c1", name="deploy", arguments="{}"),),
        seq=4,
        tokens=5,
        created_at=LONG_AGO,
        thinking_blocks=({"type": "thinking", "thinking": "hm"},),
        provider="anthropic",
        turn_id="t1",
    ),
    Message(role=Role.TOOL, content="done", tool_call_id="c1", name="deploy", seq=5, tokens=5, created_at=LONG_AGO),
    Message(
        role=Role.USER,
        kind=Kind.ANNOUNCEMENT,
        content=[{"type": "text", "text": "look"}],
        media=(MediaRef(ref="m_1", kind="image", name="a.png"),),
        attachments=(Attachment(kind="CLI App", name="gh", details={"entry_point": "gh"}),),
        runtime_context="now",
        event_id="slack/msg:1",
        extra={"latency_ms": 5},
        marks=frozenset({Mark.UNDONE}),
        seq=9,
        tokens=7,
        created_at=LONG_AGO,
    ),
)


def a_copy(**fields: object) -> SessionCopy:
    """Return a copy with something in every field."""
    session = Session(
        id="s1",
        key=KEY,
        created_at=LONG_AGO,
        updated_at=LONG_AGO + timedelta(days=1),
        workspace="/w",
        agent="coder",
        model="echo",
        mode="auto",
        title="The deploy",
        title_source=TitleSource.GENERATED,
        preview="please deploy",
        message_count=4,
        extra_roots=({"path": "/x", "writable": True},),
        grants={"tools": ["deploy"]},
        pinned=True,
        archived=True,
        origin=Origin(kind="slack", tenant="T1", chat_id="D1", chat_name="alice"),
        parent_id="s0",
        consolidated_through=3,
        replay_from=4,
        compaction={"summary_text": "they met"},
        metadata={"x": [1, None]},
    )
    old = Retired(
        row=Message(
            role=Role.USER, content="hello", seq=1, tokens=5, created_at=LONG_AGO, marks=frozenset({Mark.DELETED})
        ),
        reason="retention",
        moved_at=LONG_AGO,
    )
    return SessionCopy(session=replace(session, **fields), rows=ROWS, attic=(old,))  # type: ignore[arg-type]


async def test_a_restored_session_is_the_same_in_every_field(store: Store) -> None:
    assert await store.sessions.restore(a_copy()) is Restored.ADDED
    assert await store.sessions.copy("s1") == a_copy()
    assert await store.sessions.get(KEY) == a_copy().session
    assert [one.id for one in (await store.sessions.list(SessionQuery())).sessions] == ["s1"]


async def test_a_restored_session_goes_on_where_it_was(store: Store) -> None:
    await store.sessions.restore(a_copy())
    (row,) = await store.sessions.append("s1", [Message(role=Role.USER, content="and now?")])
    assert row.seq == 10
    assert await store.sessions.search("deploy")


async def test_restoring_twice_changes_nothing(store: Store) -> None:
    await store.sessions.restore(a_copy())
    assert await store.sessions.restore(a_copy(title="another")) is Restored.KNOWN
    assert await store.sessions.copy("s1") == a_copy()


async def test_a_session_that_was_deleted_here_does_not_come_back(store: Store) -> None:
    await store.sessions.restore(a_copy())
    await store.sessions.delete("s1")
    assert await store.sessions.restore(a_copy()) is Restored.DELETED
    with pytest.raises(NotFound):
        await store.sessions.get("s1")


async def test_where_the_chat_has_an_open_session_the_copy_is_added_as_closed(store: Store) -> None:
    there = await store.sessions.open(KEY, NewSession())
    assert await store.sessions.restore(a_copy()) is Restored.ADDED_CLOSED
    assert (await store.sessions.get(KEY)).id == there.id
    assert (await store.sessions.get("s1")).closed_at == a_copy().session.updated_at


async def test_what_a_copy_would_become_is_told_without_writing(store: Store) -> None:
    assert await store.sessions.would_restore(a_copy()) is Restored.ADDED
    assert (await store.sessions.list(SessionQuery())).sessions == []
    await store.sessions.open(KEY, NewSession())
    assert await store.sessions.would_restore(a_copy()) is Restored.ADDED_CLOSED
    assert await store.sessions.would_restore(a_copy(closed_at=LONG_AGO)) is Restored.ADDED
    await store.sessions.restore(a_copy())
    assert await store.sessions.would_restore(a_copy()) is Restored.KNOWN
    await store.sessions.delete("s1")
    assert await store.sessions.would_restore(a_copy()) is Restored.DELETED


async def test_a_copy_of_a_closed_session_stays_closed(store: Store) -> None:
    assert await store.sessions.restore(a_copy(closed_at=LONG_AGO)) is Restored.ADDED
    with pytest.raises(NotFound):
        await store.sessions.get(KEY)


async def test_rows_without_a_count_are_counted_and_names_are_made_of_them(store: Store) -> None:
    rows = [Message(role=Role.USER, content="one two three", seq=1, created_at=LONG_AGO)]
    blank = a_copy(title="", title_source=TitleSource.NONE, preview="")
    await store.sessions.restore(replace(blank, rows=rows, attic=()))
    session = await store.sessions.get("s1")
    assert [row.tokens for row in await store.sessions.page("s1")] == [count_words("one two three") + 4]
    assert (session.title, session.title_source, session.preview, session.message_count) == (
        "one two three", TitleSource.FIRST_LINE, "one two three", 1,
    )  # fmt: skip


async def test_what_verbs_made_of_a_session_is_carried_to_another_store(
    store: Store, tmp_path: Path, clock: ManualClock
) -> None:
    session = await store.sessions.open(KEY, NewSession(metadata={"a": 1}))
    await store.sessions.append(session.id, [Message(role=Role.USER, content=text) for text in "abcdef"])
    await store.sessions.mark(session.id, [2], Mark.UNDONE)
    await store.sessions.retire(session.id, [1, 3], "retention")
    await store.sessions.set_title(session.id, "Letters", TitleSource.EDITED)
    (tmp_path / "second").mkdir()
    async with open_engine(ENGINES[0], tmp_path / "second", clock, id_maker("other")) as second:
        copied = await store.sessions.copy(session.id)
        assert await second.sessions.restore(copied) is Restored.ADDED
        assert await second.sessions.copy(session.id) == copied


async def test_a_session_is_attached_to_another_chat_and_is_its_open_one(store: Store) -> None:
    await store.sessions.restore(a_copy(closed_at=LONG_AGO))
    attached = await store.sessions.attach("s1", OTHER)
    assert (attached.key, attached.closed_at, attached.archived) == (OTHER, None, True)
    assert (await store.sessions.get(OTHER)).id == "s1"
    assert [one.id for one in (await store.sessions.list(SessionQuery(channel="telegram"))).sessions] == ["s1"]


async def test_a_chat_with_an_open_session_keeps_it(store: Store) -> None:
    there = await store.sessions.open(OTHER, NewSession())
    await store.sessions.restore(a_copy())
    with pytest.raises(Refused, match=there.id):
        await store.sessions.attach("s1", OTHER)
    assert (await store.sessions.get("s1")).key == KEY


async def test_a_session_that_answers_is_not_attached_elsewhere(store: Store) -> None:
    session_id = await store.turns.accept(message("hi", 1), NewSession())
    assert session_id is not None
    with pytest.raises(Refused, match="at rest"):
        await store.sessions.attach(session_id, OTHER)
    lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
    assert lease is not None
    turn = await store.turns.begin(session_id, lease)
    assert turn is not None
    with pytest.raises(Refused, match="at rest"):
        await store.sessions.attach(session_id, OTHER)
    await store.turns.finish(turn, lease, [], [], None)
    assert (await store.sessions.attach(session_id, OTHER)).key == OTHER


async def test_a_session_may_be_attached_to_the_chat_that_it_has(store: Store) -> None:
    session = await store.sessions.open(KEY, NewSession())
    assert (await store.sessions.attach(session.id, KEY)).id == session.id


async def test_sessions_are_found_by_the_beginning_of_an_id(store: Store) -> None:
    for id in ("abc1", "abc2", "abd1", "ab"):
        await store.sessions.restore(a_copy(id=id, key=SessionKey("slack", id)))
    await store.sessions.delete("abc2")
    assert [one.id for one in await store.sessions.beginning("abc")] == ["abc1"]
    assert {one.id for one in await store.sessions.beginning("ab")} == {"ab", "abc1", "abd1"}
    assert len(await store.sessions.beginning("ab", limit=2)) == 2
    assert await store.sessions.beginning("x%") == []
