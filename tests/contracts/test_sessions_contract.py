"""What every store of sessions promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession, SessionQuery
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ROUTE, delivery, message

KEY = SessionKey("slack", "D1")
TTL = timedelta(seconds=30)


async def filled(store: Store, *texts: str, route: Route = ROUTE) -> Session:
    """Return a session holding one user row a text."""
    session = await store.sessions.open(route.key, NewSession())
    for text in texts:
        await store.turns.accept(message(text, hash((text, route)), route=route), NewSession())
        lease = await store.leases.acquire(session_lease(session.id), "test", TTL)
        assert lease is not None
        turn = await store.turns.begin(session.id, lease)
        assert turn is not None
        await store.turns.finish(turn, lease, [], [], None)
        await store.leases.release(lease)
    return await store.sessions.get(session.id)


async def test_a_key_has_one_open_session(store: Store) -> None:
    sessions = await asyncio.gather(*(store.sessions.open(KEY, NewSession(workspace=str(n))) for n in range(20)))
    assert len({session.id for session in sessions}) == 1


async def test_a_session_is_found_by_id_and_by_key(store: Store) -> None:
    origin = Origin(kind="slack", label="#general · T0ABCD", tenant="T0ABCD", chat_id="C1")
    new = NewSession(workspace="/w", agent="a", model="echo", mode="m", origin=origin, metadata={"x": [1]})
    made = await store.sessions.open(KEY, new)
    assert await store.sessions.get(made.id) == await store.sessions.get(KEY) == made
    assert (made.workspace, made.model, made.origin, made.metadata) == ("/w", "echo", origin, {"x": [1]})
    assert made.origin_label == "#general · T0ABCD"


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    for ref in ("nobody", SessionKey("slack", "none")):
        with pytest.raises(NotFound):
            await store.sessions.get(ref)


async def test_rows_are_paged_in_order_from_either_end(store: Store) -> None:
    session = await filled(store, *"abcdefg")
    page = store.sessions.page
    assert [row.text for row in await page(session.id, limit=3)] == list("efg")
    assert [row.text for row in await page(session.id, before=5, limit=2)] == list("cd")
    assert [row.text for row in await page(session.id, after=5, limit=9)] == list("fg")
    assert await page(session.id, after=7) == ()
    with pytest.raises(Refused):
        await page(session.id, before=1, after=1)


async def test_every_field_of_a_row_comes_back(store: Store, clock: ManualClock) -> None:
    session = await filled(store, "hello")
    await store.turns.accept(message("again", 1), NewSession())
    lease = await store.leases.acquire(session_lease(session.id), "test", TTL)
    assert lease is not None
    turn = await store.turns.begin(session.id, lease)
    assert turn is not None
    row = Message(
        role=Role.ASSISTANT,
        kind=Kind.CHAT,
        content=[{"type": "text", "text": "ünï ✨"}, {"type": "image_url", "image_url": {"url": "x"}}],
        tool_calls=(ToolCall(id="c1", name="look", arguments='{"at": "☀"}'), ToolCall(id="c2", name="b", arguments="")),
        tool_call_id="t",
        name="n",
        reasoning_content="because",
        thinking_blocks=({"type": "thinking", "thinking": "hm", "signature": "s=="},),
        provider="anthropic",
        model="claude",
        sender=Sender(id="U9", name="Bo", is_bot=True),
        media=(MediaRef(ref="m_1", kind="image", name="a.png", mime="image/png", size_bytes=3),),
        runtime_context="it is noon",
        created_at=clock.now() - timedelta(microseconds=1),
        extra={"latency_ms": 12},
    )
    await store.turns.append_round(turn, lease, [row], None)
    (stored,) = await store.sessions.page(session.id, limit=1)
    assert stored == replace(row, seq=stored.seq, turn_id=turn.id, tokens=stored.tokens)
    assert stored.tokens is not None
    assert stored.tokens > 4


async def test_rows_can_be_appended_outside_of_any_turn_in_order_and_counted(store: Store) -> None:
    session = await store.sessions.open(KEY, NewSession())
    words = [Message(role=Role.USER, content=f"word {n}") for n in range(3)]
    added = await store.sessions.append(session.id, words)
    assert [(row.seq, row.text, row.tokens) for row in added] == [(n + 1, f"word {n}", 6) for n in range(3)]
    assert await store.sessions.page(session.id) == added
    assert await store.sessions.append(session.id, []) == ()
    header = await store.sessions.get(session.id)
    assert (header.message_count, header.title, header.preview) == (3, "word 0", "word 0")
    await store.sessions.delete(session.id)
    with pytest.raises(NotFound):
        await store.sessions.append(session.id, words)


async def test_twenty_appends_to_one_key_at_once_are_all_kept(store: Store) -> None:
    """Case C8: no append is lost to another that read the same state."""
    session = await store.sessions.open(KEY, NewSession())
    await asyncio.gather(
        *(store.sessions.append(session.id, [Message(role=Role.USER, content=str(n))]) for n in range(20))
    )
    assert sorted(row.text for row in await store.sessions.page(session.id)) == sorted(map(str, range(20)))
    assert [row.seq for row in await store.sessions.page(session.id)] == list(range(1, 21))


async def test_only_the_fields_that_are_named_are_updated(store: Store) -> None:
    session = await store.sessions.open(KEY, NewSession(mode="old", model="echo"))
    updated = await store.sessions.update(
        session.id, {"mode": "new", "pinned": True, "grants": {"tools": ["a"]}, "extra_roots": [{"path": "/p"}]}
    )
    assert updated == replace(session, mode="new", pinned=True, grants={"tools": ["a"]}, extra_roots=({"path": "/p"},))
    for wrong in ({"id": "x"}, {"title": "x"}, {"mode; DROP TABLE sessions": 1}, {"message_count": 0}):
        with pytest.raises(Refused):
            await store.sessions.update(session.id, wrong)


async def test_an_origin_is_set_once(store: Store) -> None:
    session = await store.sessions.open(KEY, NewSession())
    assert await store.sessions.set_origin(session.id, Origin(kind="github", label="acme/api#42"))
    assert not await store.sessions.set_origin(session.id, Origin(kind="slack"))
    assert (await store.sessions.get(session.id)).origin_label == "acme/api#42"


async def test_a_mark_hides_a_row_and_changes_nothing_of_it(store: Store) -> None:
    session = await filled(store, "a", "b")
    assert await store.sessions.mark(session.id, [1, 1, 99], Mark.DELETED) == 1
    assert await store.sessions.mark(session.id, [1], Mark.DELETED) == 0
    assert await store.sessions.mark(session.id, [1], Mark.REFUSED) == 1
    first, second = await store.sessions.page(session.id)
    assert (first.text, first.marks, second.marks) == ("a", {Mark.DELETED, Mark.REFUSED}, frozenset())


async def test_closing_makes_room_for_a_new_session_and_keeps_the_old(store: Store) -> None:
    old = await filled(store, "a")
    closed = await store.sessions.close(KEY)
    assert closed is not None
    assert closed.closed_at is not None
    assert await store.sessions.close(KEY) is None
    new = await store.sessions.open(KEY, NewSession())
    assert new.id != old.id
    assert [row.text for row in await store.sessions.page(old.id)] == ["a"]


async def test_a_fork_holds_copies_of_what_came_before(store: Store) -> None:
    source = await filled(store, "a", "b", "c")
    fork = await store.sessions.fork(source.id, 3, SessionKey("slack", "D2"))
    assert [row.text for row in await store.sessions.page(fork.id)] == ["a", "b"]
    assert (fork.parent_id, fork.message_count) == (source.id, 2)
    with pytest.raises(Refused):
        await store.sessions.fork(source.id, 3, SessionKey("slack", "D2"))


async def test_a_deleted_session_is_a_tombstone(store: Store) -> None:
    session = await filled(store, "a")
    assert await store.sessions.delete(session.id)
    assert not await store.sessions.delete(session.id)
    for attempt in (
        store.sessions.get(session.id),
        store.sessions.page(session.id),
        store.sessions.update(session.id, {}),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await store.sessions.open(KEY, NewSession())).id != session.id


async def test_sessions_are_listed_pinned_first_then_newest_page_by_page(store: Store, clock: ManualClock) -> None:
    keys = [SessionKey("slack", f"D{n}") for n in range(7)]
    for key in keys:
        session = await store.sessions.open(key, NewSession())
        await clock.advance(1)
        if key.chat_id == "D2":
            await store.sessions.update(session.id, {"pinned": True})
    seen: list[str] = []
    cursor = None
    while True:
        page = await store.sessions.list(SessionQuery(cursor=cursor, limit=3))
        seen += [session.key.chat_id for session in page.sessions]
        if (cursor := page.next_cursor) is None:
            break
    assert seen == ["D2", "D6", "D5", "D4", "D3", "D1", "D0"]
    with pytest.raises(Refused):
        await store.sessions.list(SessionQuery(cursor="nonsense"))


async def test_a_list_can_be_narrowed(store: Store, clock: ManualClock) -> None:
    await store.sessions.open(SessionKey("slack", "D1"), NewSession(workspace="/w"))
    await store.sessions.open(SessionKey("telegram", "1"), NewSession(origin=Origin(kind="github")))
    await store.sessions.close(SessionKey("slack", "D1"))
    await clock.advance(10)
    late = await store.sessions.open(SessionKey("slack", "D9"), NewSession())
    await store.sessions.update(late.id, {"archived": True})

    async def found(query: SessionQuery) -> set[str]:
        return {session.key.chat_id for session in (await store.sessions.list(query)).sessions}

    assert await found(SessionQuery(channel="slack")) == {"D1", "D9"}
    assert await found(SessionQuery(origin_kind="github")) == {"1"}
    assert await found(SessionQuery(workspace="/w")) == {"D1"}
    assert await found(SessionQuery(archived=True)) == {"D9"}
    assert await found(SessionQuery(archived=False, closed=False)) == {"1"}
    assert await found(SessionQuery(closed=True)) == {"D1"}
    assert await found(SessionQuery(since=clock.now())) == {"D9"}


async def test_the_first_line_is_the_title_until_there_is_a_better_one(store: Store) -> None:
    session = await filled(store, "Plan my trip\nto Rome", "and Naples")
    set_title = store.sessions.set_title
    assert (session.title, session.title_source, session.preview) == (
        "Plan my trip",
        TitleSource.FIRST_LINE,
        "Plan my trip to Rome",
    )
    assert await set_title(session.id, "Trip to Rome", TitleSource.GENERATED)
    assert await set_title(session.id, "Italy!", TitleSource.EDITED)
    assert not await set_title(session.id, "Rome and Naples", TitleSource.GENERATED)
    assert await set_title(session.id, "Italy?", TitleSource.EDITED)
    edited = await store.sessions.get(session.id)
    assert (edited.title, edited.title_edited) == ("Italy?", True)


async def test_attempts_to_title_are_bounded_and_end_with_a_title(store: Store) -> None:
    session = await filled(store, "hello")
    assert [await store.sessions.try_title(session.id, 2) for _ in range(3)] == [True, True, False]
    other = await filled(store, "hello", route=Route("slack", "D2"))
    await store.sessions.set_title(other.id, "Mine", TitleSource.EDITED)
    assert not await store.sessions.try_title(other.id, 2)


async def test_a_preview_follows_what_is_visible(store: Store) -> None:
    session = await filled(store, "first", "second")
    await store.sessions.mark(session.id, [1], Mark.DELETED)
    assert (await store.sessions.get(session.id)).preview == "second"
    await store.sessions.retire(session.id, [2], "test")
    assert (await store.sessions.get(session.id)).preview == ""


async def test_a_first_line_title_follows_what_is_visible_and_one_that_was_written_does_not(store: Store) -> None:
    session = await filled(store, "secret plan", "lunch")
    await store.sessions.mark(session.id, [1], Mark.DELETED)
    assert (await store.sessions.get(session.id)).title == "lunch"
    await store.sessions.clear(session.id)
    assert (await store.sessions.get(session.id)).title == ""
    await store.sessions.append(session.id, [Message(role=Role.USER, content="again")])
    assert (await store.sessions.get(session.id)).title == "again"
    await store.sessions.set_title(session.id, "Mine", TitleSource.EDITED)
    await store.sessions.clear(session.id)
    assert (await store.sessions.get(session.id)).title == "Mine"


async def test_a_question_after_an_announcement_titles_the_session(store: Store) -> None:
    session = await store.sessions.open(KEY, NewSession())
    announced = Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content="[Subagent 'x' completed]")
    await store.sessions.append(session.id, [announced])
    await store.sessions.append(session.id, [Message(role=Role.USER, content="thanks, and now?")])
    assert (await store.sessions.get(session.id)).title == "thanks, and now?"


async def test_rows_in_the_attic_are_kept_and_no_longer_live(store: Store) -> None:
    session = await filled(store, *"abcd")
    before = await store.sessions.page(session.id)
    await store.sessions.mark(session.id, [2], Mark.DELETED)
    assert await store.sessions.retire(session.id, [1, 2, 99], "retention") == 2
    assert [row.text for row in await store.sessions.page(session.id)] == ["c", "d"]
    assert [row.marks for row in await store.sessions.attic(session.id)] == [frozenset(), {Mark.DELETED}]
    assert [replace(row, marks=frozenset()) for row in await store.sessions.attic(session.id)] == list(before[:2])
    assert [row.seq for row in await store.sessions.attic(session.id, after=1)] == [2]
    assert (await store.sessions.get(session.id)).message_count == 2
    assert await store.sessions.search("a") == []


async def test_a_fork_takes_marks_and_settings_along_but_not_the_old_ones_progress(store: Store) -> None:
    new = NewSession(workspace="/w", model="echo", metadata={"a": 1, "goal_state": "x", "_last_summary": "s"})
    await store.sessions.open(KEY, new)
    source = await filled(store, *"abcd")
    await store.sessions.mark(source.id, [2], Mark.UNDONE)
    await store.sessions.update(source.id, {"consolidated_through": 2, "compaction": {"summary": "s"}})
    fork = await store.sessions.fork(source.id, 4, SessionKey("slack", "D2"))
    assert [(row.text, row.marks) for row in await store.sessions.page(fork.id)] == [
        ("a", frozenset()),
        ("b", {Mark.UNDONE}),
        ("c", frozenset()),
    ]
    assert (fork.workspace, fork.model, fork.consolidated_through) == ("/w", "echo", 2)
    assert fork.metadata == {"a": 1, "_last_summary": "s"}
    early = await store.sessions.fork(source.id, 2, SessionKey("slack", "D3"))
    assert (early.consolidated_through, early.compaction, early.metadata) == (0, {}, {"a": 1})


async def test_clearing_moves_all_rows_to_the_attic_and_forgets_their_summary_only(store: Store) -> None:
    session = await filled(store, *"abc")
    await store.sessions.update(session.id, {"compaction": {"s": 1}, "metadata": {"_last_summary": "s", "goal": "g"}})
    assert await store.sessions.clear(session.id) == 3
    cleared = await store.sessions.get(session.id)
    assert (cleared.message_count, cleared.compaction, cleared.metadata) == (0, {}, {"goal": "g"})
    assert [row.text for row in await store.sessions.attic(session.id)] == list("abc")


async def test_what_a_running_turn_works_on_stays_when_its_session_is_cleared(store: Store) -> None:
    session = await filled(store, "old")
    await store.turns.accept(message("asked", 99), NewSession())
    lease = await store.leases.acquire(session_lease(session.id), "test", TTL)
    assert lease is not None
    await store.turns.begin(session.id, lease)
    assert await store.sessions.clear(session.id) == 1
    assert [row.text for row in await store.sessions.page(session.id)] == ["asked"]


async def test_an_event_whose_row_is_in_the_attic_is_no_turn_again(store: Store, clock: ManualClock) -> None:
    session = await filled(store, "once")
    await store.sessions.clear(session.id)
    await clock.advance(8 * 24 * 3600)
    await store.turns.forget()
    again = message("once", hash(("once", ROUTE)))
    assert await store.turns.accept(again, NewSession()) == session.id
    lease = await store.leases.acquire(session_lease(session.id), "test", TTL)
    assert lease is not None
    assert await store.turns.begin(session.id, lease) is None


@pytest.mark.parametrize(
    "patch",
    [
        {"pinned": 2}, {"pinned": None}, {"consolidated_through": "x"}, {"consolidated_through": True},
        {"workspace": b"x"},
        {"metadata": [1]}, {"metadata": {"a": object()}}, {"metadata": {"a": float("nan")}}, {"extra_roots": 5},
    ],
)  # fmt: skip
async def test_a_field_of_the_wrong_type_is_refused_and_changes_nothing(store: Store, patch: dict[str, object]) -> None:
    session = await store.sessions.open(KEY, NewSession())
    with pytest.raises(Refused):
        await store.sessions.update(session.id, patch)
    assert await store.sessions.get(session.id) == session


async def test_half_a_character_costs_itself_wherever_it_comes_in(store: Store) -> None:
    half = "a\ud83d\x00"
    session = await store.sessions.open(KEY, NewSession())
    call = ToolCall(id="c", name="look", arguments=half)
    (row,) = await store.sessions.append(session.id, [Message(role=Role.ASSISTANT, content=half, tool_calls=(call,))])
    assert row.text == "a\ufffd\ufffd"
    await store.sessions.set_title(session.id, half, TitleSource.EDITED)
    await store.sessions.update(session.id, {"metadata": {"x": half}, "workspace": half})
    assert len(await store.sessions.search(half)) >= 1


async def test_deleting_erases_the_words_of_the_header_and_of_what_was_on_its_way(store: Store) -> None:
    session = await filled(store, "a")
    await store.sessions.update(session.id, {"compaction": {"summary": "secret"}})
    await store.outbox.enqueue([replace(delivery("secret", 1), session_id=session.id)])
    await store.sessions.delete(session.id)
    assert [found.outbound for found in await store.outbox.list()] == [None]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_that_would_be_none_is_refused(store: Store, limit: int) -> None:
    with pytest.raises(Refused):
        await store.sessions.list(SessionQuery(limit=limit))
    with pytest.raises(Refused):
        await store.sessions.page((await store.sessions.open(KEY, NewSession())).id, limit=-1)
