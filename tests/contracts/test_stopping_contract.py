"""What every store of turns promises of stops, of what waits, and of turns that ended badly."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.domain.errors import LeaseLost, Overfull, StopRequested
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.turn import RESUME, Backlog, Stopping, TurnState, Usage, Waiting
from gateway.ports.sessions import NewSession
from gateway.store import Store
from tests.clock import ManualClock
from tests.contracts.test_turns_contract import accept, begun, lease_of, said, texts
from tests.stores import NOON, delivery, message

KEY = message("", 0).key


async def test_a_stop_is_asked_of_what_is_unfinished_only(store: Store) -> None:
    assert await store.turns.request_stop("no such session", "U1") is Stopping.NOTHING
    assert await store.turns.request_stop(KEY, "U1") is Stopping.NOTHING
    turn, lease = await begun(store)
    assert await store.turns.request_stop(turn.session_id, "U1") is Stopping.REQUESTED
    await store.turns.fail(turn, lease, TurnState.STOPPED, [])
    assert await store.turns.request_stop(KEY, "U1") is Stopping.NOTHING


async def test_a_turn_that_is_asked_to_stop_writes_nothing_but_its_end(store: Store) -> None:
    turn, lease = await begun(store)
    assert await store.turns.request_stop(KEY, "U1") is Stopping.REQUESTED
    for attempt in (
        store.turns.append_round(turn, lease, [said("x")], None),
        store.turns.append_round(turn, lease, [], None),
        store.turns.finish(turn, lease, [said("x")], [delivery("x", 1)], None),
        store.turns.fail(turn, lease, TurnState.FAILED, [delivery("x", 2)]),
        store.turns.suspend(turn, lease, Waiting(reason="choice")),
        store.turns.consolidate(turn, lease, 1, {}, []),
        store.turns.keep_media(turn, lease, 1, ()),
        store.turns.join(turn, lease),
    ):
        with pytest.raises(StopRequested):
            await attempt
    assert await texts(store, turn.session_id) == ["hi"]
    assert await store.outbox.list() == []


async def test_a_stopped_turn_keeps_what_there_is_of_its_round_and_marks_the_cut(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.append_round(turn, lease, [said("round one")], None)
    await store.turns.request_stop(KEY, "U1")
    rows = [Message(role=Role.TOOL, tool_call_id="a", content="result")]
    usage = Usage(provider="p", model="m", input_tokens=5, counted_tokens=4)
    await store.turns.fail(turn, lease, TurnState.STOPPED, [delivery("stopped", 1)], rows=rows, usage=usage)
    page = await store.sessions.page(turn.session_id)
    assert [(row.role, row.kind) for row in page] == [
        (Role.USER, Kind.CHAT),
        (Role.ASSISTANT, Kind.CHAT),
        (Role.TOOL, Kind.CHAT),
        (Role.USER, Kind.INTERRUPTED),
    ]
    assert {row.turn_id for row in page} == {turn.id}
    assert await store.turns.latest_usage(turn.session_id) == usage
    with pytest.raises(LeaseLost):
        await store.turns.append_round(turn, lease, [said("late")], None)


async def test_what_waits_at_a_stop_becomes_rows_in_order_and_no_turn(store: Store) -> None:
    turn, lease = await begun(store)
    await accept(store, "three", 3, at=NOON + timedelta(seconds=3))
    await accept(store, "two", 2, at=NOON + timedelta(seconds=2))
    await store.turns.request_stop(KEY, "U1")
    await accept(store, "after", 4, at=NOON + timedelta(seconds=1))
    await store.turns.fail(turn, lease, TurnState.STOPPED, [])
    assert (await texts(store, turn.session_id))[:3] == ["hi", "two", "three"]
    following = await store.turns.begin(turn.session_id, lease)
    assert following is not None
    assert following.stop_requested_by is None
    assert (await texts(store, turn.session_id))[-1] == "after"


async def test_a_stop_of_what_only_waits_makes_a_turn_that_says_so(store: Store) -> None:
    session_id = await accept(store, "one", 1)
    assert await store.turns.request_stop(session_id, "U7") is Stopping.REQUESTED
    assert await store.turns.request_stop(session_id, "U8") is Stopping.REQUESTED
    assert await store.turns.due(["slack"], 5) == [session_id]
    turn = await store.turns.begin(session_id, await lease_of(store, session_id))
    assert turn is not None
    assert turn.stop_requested_by == "U7"


async def test_what_was_stopped_while_it_waited_is_a_turn_of_its_own_before_what_came_after(store: Store) -> None:
    """Otherwise whoever said stop would not be told, and be answered all the same."""
    session_id = await accept(store, "delete everything", 1)
    await store.turns.request_stop(session_id, "U1")
    await accept(store, "hello", 2)
    lease = await lease_of(store, session_id)
    stopped = await store.turns.begin(session_id, lease)
    assert stopped is not None
    assert stopped.stop_requested_by == "U1"
    await store.turns.fail(stopped, lease, TurnState.STOPPED, [])
    following = await store.turns.begin(session_id, lease)
    assert following is not None
    assert following.stop_requested_by is None
    rows = await store.sessions.page(session_id)
    assert [row.kind for row in rows] == [Kind.CHAT, Kind.INTERRUPTED, Kind.CHAT]
    assert [row.text for row in rows][::2] == ["delete everything", "hello"]


async def test_a_turn_names_the_newest_message_it_answers(store: Store) -> None:
    turn, lease = await begun(store, "one", 1)
    assert turn.message_id == "msg:1"
    await accept(store, "two", 2)
    assert (await store.turns.join(turn, lease)).turn.message_id == "msg:2"
    assert (await store.turns.list())[0].message_id == "msg:2"


async def test_a_stop_wakes_a_turn_that_waits(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.suspend(turn, lease, Waiting(reason="choice"))
    assert await store.turns.begin(turn.session_id, lease) is None
    await store.turns.request_stop(turn.session_id, "U1")
    assert not await store.turns.release_if_idle(turn.session_id, lease)
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert (resumed.id, resumed.attempt, resumed.stop_requested_by) == (turn.id, 1, "U1")


async def test_a_stop_stands_over_a_restart(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    await store.turns.request_stop(turn.session_id, "U1")
    await store.turns.suspend(turn, lease, Waiting(reason=RESUME))
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert resumed.stop_requested_by == "U1"


async def test_the_event_that_asked_for_a_stop_is_remembered(store: Store, clock: ManualClock) -> None:
    stop = message("/stop", 9)
    assert await store.turns.request_stop(KEY, "U1", event=stop) is Stopping.NOTHING
    turn, lease = await begun(store)
    assert await store.turns.request_stop(KEY, "U1", event=stop) is Stopping.REPEAT
    await store.turns.finish(turn, lease, [said("yo")], [], None)
    await clock.advance(6 * 24 * 3600)
    await store.turns.forget()
    assert await store.turns.request_stop(KEY, "U1", event=stop) is Stopping.REPEAT
    assert await store.turns.accept(stop, NewSession()) is None


async def test_of_many_stops_at_once_each_is_obeyed_at_most_once(store: Store) -> None:
    turn, lease = await begun(store)
    stop = message("/stop", 9)
    found = await asyncio.gather(*(store.turns.request_stop(KEY, "U1", event=stop) for _ in range(20)))
    assert sorted(found) == sorted([Stopping.REQUESTED, *[Stopping.REPEAT] * 19])
    await store.turns.fail(turn, lease, TurnState.STOPPED, [])


async def test_a_stop_is_for_the_open_session_of_a_key(store: Store) -> None:
    turn, _ = await begun(store)
    await store.sessions.close(KEY)
    assert await store.turns.request_stop(KEY, "U1") is Stopping.NOTHING
    assert await store.turns.request_stop(SessionKey("slack", "other"), "U1") is Stopping.NOTHING
    assert await store.turns.request_stop(turn.session_id, "U1") is Stopping.REQUESTED


async def test_the_backlog_is_what_waits(store: Store, clock: ManualClock) -> None:
    session_id = await accept(store, "one", 1)
    first = clock.now()
    await clock.advance(5)
    await store.turns.request_stop(session_id, "U1")
    await accept(store, "two", 2)
    assert await store.turns.backlog(session_id) == Backlog(count=2, stopped=1, oldest=first, newest=clock.now())
    await store.turns.begin(session_id, await lease_of(store, session_id))
    assert await store.turns.backlog(session_id) == Backlog(count=1, oldest=clock.now(), newest=clock.now())
    assert await store.turns.backlog("no such session") == Backlog()


async def test_only_so_many_wait_and_a_repeat_is_one_however_full_it_is(store: Store) -> None:
    for n in (2, 1):
        await store.turns.accept(message(f"m{n}", n), NewSession(), most_waiting=2)
    with pytest.raises(Overfull) as caught:
        await store.turns.accept(message("m3", 3), NewSession(), most_waiting=2)
    assert (caught.value.most, caught.value.oldest) == (2, "msg:2")
    assert await store.turns.accept(message("m1", 1), NewSession(), most_waiting=2) is None
    other = message("m4", 4, route=Route("slack", "D2"))
    assert await store.turns.accept(other, NewSession(), most_waiting=2) is not None
    session_id = (await store.sessions.get(KEY)).id
    await store.turns.begin(session_id, await lease_of(store, session_id))
    assert await store.turns.accept(message("m3", 3), NewSession(), most_waiting=2) == session_id


async def test_the_rows_of_a_turn_that_is_set_aside_are_marked_and_no_others(store: Store) -> None:
    first, lease = await begun(store, "fine", 1)
    await store.turns.finish(first, lease, [said("yo")], [], None)
    await accept(store, "poison", 2)
    turn = await store.turns.begin(first.session_id, lease)
    assert turn is not None
    await store.turns.append_round(turn, lease, [said("hm")], None)
    revision = (await store.sessions.get(turn.session_id)).revision
    await store.turns.fail(turn, lease, TurnState.SET_ASIDE, [delivery("sorry", 1)])
    page = await store.sessions.page(turn.session_id)
    assert [(row.text, row.marks) for row in page] == [
        ("fine", frozenset()),
        ("yo", frozenset()),
        ("poison", frozenset({Mark.SET_ASIDE})),
        ("hm", frozenset({Mark.SET_ASIDE})),
    ]
    assert (await store.sessions.get(turn.session_id)).revision > revision


async def test_turns_are_listed_newest_first(store: Store, clock: ManualClock) -> None:
    ids = []
    for n, outcome in enumerate([TurnState.SET_ASIDE, TurnState.FAILED, TurnState.SET_ASIDE]):
        await clock.advance(1)
        session_id = await accept(store, "x", n, route=Route("slack", f"D{n}"))
        lease = await lease_of(store, session_id)
        turn = await store.turns.begin(session_id, lease)
        assert turn is not None
        await store.turns.fail(turn, lease, outcome, [])
        ids.append(turn.id)
    listed = await store.turns.list(state=TurnState.SET_ASIDE)
    assert [turn.id for turn in listed] == [ids[2], ids[0]]
    assert {turn.state for turn in listed} == {TurnState.SET_ASIDE}
    assert [turn.id for turn in await store.turns.list(limit=2)] == [ids[2], ids[1]]
    assert [turn.id for turn in await store.turns.list(session_id=listed[1].session_id)] == [ids[0]]
    await store.sessions.delete(listed[0].session_id)
    assert [turn.id for turn in await store.turns.list(state=TurnState.SET_ASIDE)] == [ids[0]]
