"""What every store of turns promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.errors import LeaseLost, Refused
from gateway.domain.keys import Route
from gateway.domain.message import Kind, MediaRef, Message, Role
from gateway.domain.outbound import DeliveryState
from gateway.domain.turn import RESUME, Turn, TurnState, Usage, Waiting
from gateway.ports.leases import Lease, session_lease
from gateway.ports.sessions import NewSession
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import NOON, delivery, message, open_engine

TTL = timedelta(seconds=30)
NEW = NewSession()
USAGE = Usage(provider="echo", model="echo", input_tokens=3, output_tokens=2)


async def accept(store: Store, text: str, n: int, **more: object) -> str:
    session_id = await store.turns.accept(message(text, n, **more), NEW)  # type: ignore[arg-type]
    assert session_id is not None
    return session_id


async def lease_of(store: Store, session_id: str, owner: str = "me") -> Lease:
    lease = await store.leases.acquire(session_lease(session_id), owner, TTL)
    assert lease is not None
    return lease


async def begun(store: Store, text: str = "hi", n: int = 1) -> tuple[Turn, Lease]:
    session_id = await accept(store, text, n)
    lease = await lease_of(store, session_id)
    turn = await store.turns.begin(session_id, lease)
    assert turn is not None
    return turn, lease


def said(text: str) -> Message:
    return Message(role=Role.ASSISTANT, content=text)


async def texts(store: Store, session_id: str) -> list[str]:
    return [row.text for row in await store.sessions.page(session_id)]


async def test_a_repeat_is_not_accepted_again(store: Store) -> None:
    await accept(store, "hi", 1)
    assert await store.turns.accept(message("hi", 1), NEW) is None
    assert await store.turns.accept(message("hi", 1, route=Route("telegram", "1")), NEW) is not None


async def test_one_of_many_simultaneous_repeats_is_accepted(store: Store) -> None:
    accepted = await asyncio.gather(*(store.turns.accept(message("hi", 1), NEW) for _ in range(30)))
    assert sum(id is not None for id in accepted) == 1


@pytest.mark.parametrize("later", [timedelta(minutes=6, seconds=8), timedelta(minutes=55), timedelta(days=6)])
async def test_a_repeat_is_recognised_long_after_its_turn(store: Store, clock: ManualClock, later: timedelta) -> None:
    turn, lease = await begun(store)
    await store.turns.finish(turn, lease, [said("yo")], [], None)
    await clock.advance(later.total_seconds())
    await store.turns.forget()
    assert await store.turns.accept(message("hi", 1), NEW) is None


async def test_an_event_that_comes_again_when_its_key_is_forgotten_is_still_one_row(
    store: Store, clock: ManualClock
) -> None:
    turn, lease = await begun(store)
    await store.turns.finish(turn, lease, [said("yo")], [], None)
    await clock.advance(8 * 24 * 3600)
    await store.turns.forget()
    await accept(store, "hi", 1)
    assert await store.turns.begin(turn.session_id, lease) is None
    await accept(store, "hi", 1 + 1)
    assert await store.turns.begin(turn.session_id, lease) is not None
    assert await texts(store, turn.session_id) == ["hi", "yo", "hi"]


async def test_old_keys_are_forgotten_and_what_is_pending_is_not(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    await store.turns.finish(turn, lease, [], [], None)
    await accept(store, "waits", 2)
    await clock.advance(8 * 24 * 3600)
    assert await store.turns.forget() == 1
    await store.leases.release(lease)
    assert await store.turns.due(["slack"], 10) == [turn.session_id]


async def test_a_turn_claims_all_that_waits_in_the_platforms_order(store: Store) -> None:
    session_id = await accept(store, "third", 3, at=NOON + timedelta(seconds=2))
    await accept(store, "first", 1, at=NOON)
    await accept(store, "second", 2, at=NOON)
    lease = await lease_of(store, session_id)
    turn = await store.turns.begin(session_id, lease)
    assert turn is not None
    rows = await store.sessions.page(session_id)
    assert [row.text for row in rows] == ["first", "second", "third"]
    assert {(row.turn_id, row.role) for row in rows} == {(turn.id, Role.USER)}
    assert (turn.attempt, turn.first_seq, turn.state) == (1, 1, TurnState.RUNNING)


async def test_the_answer_goes_to_the_newest_message(store: Store) -> None:
    session_id = await accept(store, "b", 2, route=Route("slack", "D1", reply_to="2"), at=NOON + timedelta(seconds=1))
    await accept(store, "a", 1, route=Route("slack", "D1", reply_to="1"))
    turn = await store.turns.begin(session_id, await lease_of(store, session_id))
    assert turn is not None
    assert turn.route.reply_to == "2"


async def test_nothing_is_begun_where_nothing_waits(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.finish(turn, lease, [], [], None)
    assert await store.turns.begin(turn.session_id, lease) is None


async def test_a_finished_turn_leaves_rows_deliveries_and_usage_at_once(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.append_round(turn, lease, [said("thinking…")], USAGE)
    await store.turns.finish(turn, lease, [said("answer")], [delivery("answer", 1)], USAGE)
    assert await texts(store, turn.session_id) == ["hi", "thinking…", "answer"]
    assert [d.outbound.text for d in await store.outbox.list() if d.outbound] == ["answer"]
    assert (await store.sessions.get(turn.session_id)).message_count == 3


async def test_a_failed_turn_leaves_its_note_and_the_rows_so_far(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.fail(turn, lease, TurnState.FAILED, [delivery("sorry", 1)])
    assert await texts(store, turn.session_id) == ["hi"]
    assert len(await store.outbox.list(state=DeliveryState.PENDING)) == 1
    assert await store.turns.begin(turn.session_id, lease) is None


async def test_a_turn_ends_once(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.finish(turn, lease, [said("a")], [], None)
    for attempt in (
        store.turns.finish(turn, lease, [said("b")], [], None),
        store.turns.append_round(turn, lease, [said("c")], None),
        store.turns.fail(turn, lease, TurnState.FAILED, [delivery("d", 1)]),
        store.turns.suspend(turn, lease, Waiting(reason=RESUME)),
        store.turns.join(turn, lease),
    ):
        with pytest.raises(LeaseLost):
            await attempt
    assert await texts(store, turn.session_id) == ["hi", "a"]


async def test_a_runner_whose_lease_was_taken_writes_nothing(store: Store, clock: ManualClock) -> None:
    turn, stale = await begun(store)
    await clock.advance(31)
    fresh = await lease_of(store, turn.session_id, "another")
    resumed = await store.turns.begin(turn.session_id, fresh)
    assert resumed is not None
    assert (resumed.id, resumed.attempt) == (turn.id, 2)
    for attempt in (
        store.turns.append_round(turn, stale, [said("stale")], None),
        store.turns.finish(turn, stale, [said("stale")], [delivery("stale", 1)], USAGE),
        store.turns.fail(turn, stale, TurnState.FAILED, [delivery("stale", 2)]),
        store.turns.suspend(turn, stale, Waiting(reason=RESUME)),
        store.turns.join(turn, stale),
        store.turns.begin(turn.session_id, stale),
        store.turns.release_if_idle(turn.session_id, stale),
    ):
        with pytest.raises(LeaseLost):
            await attempt
    await store.turns.finish(resumed, fresh, [said("fresh")], [], None)
    assert await texts(store, turn.session_id) == ["hi", "fresh"]
    assert await store.outbox.list() == []


async def test_a_lease_of_another_session_opens_nothing(store: Store) -> None:
    turn, _ = await begun(store)
    other = await store.leases.acquire(session_lease("other"), "me", TTL)
    assert other is not None
    with pytest.raises(LeaseLost):
        await store.turns.finish(turn, other, [said("x")], [], None)


async def test_a_turn_whose_process_died_is_resumed_with_the_next_attempt(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    await store.turns.append_round(turn, lease, [said("round one")], None)
    await accept(store, "more", 2)
    for attempt in (2, 3):
        await clock.advance(31)
        lease = await lease_of(store, turn.session_id)
        resumed = await store.turns.begin(turn.session_id, lease)
        assert resumed is not None
        assert (resumed.id, resumed.attempt, resumed.route) == (turn.id, attempt, turn.route)
    assert await texts(store, turn.session_id) == ["hi", "round one"]


async def test_a_turn_that_was_there_at_a_death_is_not_begun_where_none_is_wanted(
    store: Store, clock: ManualClock
) -> None:
    turn, _ = await begun(store)
    await clock.advance(31)
    lease = await lease_of(store, turn.session_id)
    for _ in range(2):
        held_back = await store.turns.begin(turn.session_id, lease, suspects=False)
        assert held_back is not None
        assert (held_back.id, held_back.state, held_back.attempt) == (turn.id, TurnState.WAITING, 1)
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert (resumed.state, resumed.attempt) == (TurnState.RUNNING, 2)
    await store.turns.request_stop(turn.session_id, "U1")
    stopped = await store.turns.begin(turn.session_id, lease, suspects=False)
    assert stopped is not None
    assert stopped.stop_requested_by == "U1"


async def test_a_turn_set_down_on_purpose_is_resumed_without_counting(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.suspend(turn, lease, Waiting(reason=RESUME))
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert (resumed.id, resumed.attempt) == (turn.id, 1)


async def test_a_turn_that_waits_for_a_choice_holds_back_the_next(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.suspend(turn, lease, Waiting(reason="choice", details={"id": "c1"}))
    await accept(store, "more", 2)
    assert await store.turns.begin(turn.session_id, lease) is None
    assert await store.turns.release_if_idle(turn.session_id, lease)
    assert await store.turns.due(["slack"], 10) == []


async def test_input_that_came_since_joins_the_turn(store: Store) -> None:
    turn, lease = await begun(store)
    assert (await store.turns.join(turn, lease)).rows == ()
    await accept(store, "and also", 2, route=Route("slack", "D1", reply_to="2"))
    joined = await store.turns.join(turn, lease)
    assert [(row.text, row.turn_id) for row in joined.rows] == [("and also", turn.id)]
    assert joined.turn.route.reply_to == "2"
    assert await texts(store, turn.session_id) == ["hi", "and also"]
    await store.turns.finish(turn, lease, [], [], None)
    assert await store.turns.begin(turn.session_id, lease) is None


async def test_a_lease_is_given_back_only_when_nothing_waits(store: Store) -> None:
    turn, lease = await begun(store)
    assert not await store.turns.release_if_idle(turn.session_id, lease)
    await accept(store, "more", 2)
    await store.turns.finish(turn, lease, [], [], None)
    assert not await store.turns.release_if_idle(turn.session_id, lease)
    second = await store.turns.begin(turn.session_id, lease)
    assert second is not None
    await store.turns.finish(second, lease, [], [], None)
    assert await store.turns.release_if_idle(turn.session_id, lease)
    assert await store.leases.acquire(session_lease(turn.session_id), "other", TTL) is not None


async def test_due_names_sessions_with_work_and_no_holder_longest_waiting_first(
    store: Store, clock: ManualClock
) -> None:
    waiting = []
    for n in range(4):
        waiting.append(await accept(store, "x", n, route=Route("slack", f"D{n}")))
        await clock.advance(1)
    await accept(store, "x", 9, route=Route("telegram", "9"))
    held = await lease_of(store, waiting[1])
    assert await store.turns.due(["slack"], 10) == [waiting[0], waiting[2], waiting[3]]
    assert await store.turns.due(["slack"], 2) == [waiting[0], waiting[2]]
    turn = await store.turns.begin(waiting[1], held)
    assert turn is not None
    await clock.advance(31)
    assert waiting[1] in await store.turns.due(["slack"], 10)


async def test_a_deleted_sessions_turn_writes_nothing_more(store: Store) -> None:
    turn, lease = await begun(store)
    await store.sessions.delete(turn.session_id)
    with pytest.raises(LeaseLost):
        await store.turns.finish(turn, lease, [said("late")], [delivery("late", 1)], None)
    assert await store.outbox.list() == []


async def test_a_message_after_closing_goes_to_the_new_session(store: Store) -> None:
    old = await accept(store, "old", 1)
    await store.sessions.close(message("", 0).key)
    new = await accept(store, "new", 2)
    assert new != old


async def test_everything_is_there_after_opening_again(tmp_path: Path, clock: ManualClock) -> None:
    async with open_engine("sqlite", tmp_path, clock) as store:
        turn, lease = await begun(store)
        await store.turns.append_round(turn, lease, [said("half")], None)
        await accept(store, "waits", 2)
    await clock.advance(31)
    async with open_engine("sqlite", tmp_path, clock) as store:
        assert await store.turns.due(["slack"], 10) == [turn.session_id]
        lease = await lease_of(store, turn.session_id)
        resumed = await store.turns.begin(turn.session_id, lease)
        assert resumed is not None
        assert resumed.attempt == 2
        await store.turns.finish(resumed, lease, [said("done")], [], None)
        assert await store.turns.begin(turn.session_id, lease) is not None
        assert await texts(store, turn.session_id) == ["hi", "half", "done", "waits"]


async def test_two_runners_that_race_for_a_session_leave_each_answer_once(store: Store) -> None:
    """Many contenders, one session, no luck: whoever holds the lease answers, and nobody else's write counts."""
    for n in range(12):
        await accept(store, f"q{n}", n, at=NOON + timedelta(seconds=n))
    session_id = await accept(store, "last", 99, at=NOON + timedelta(seconds=99))

    async def runner(owner: str) -> None:
        while True:
            lease = await store.leases.acquire(session_lease(session_id), owner, TTL)
            if lease is None:
                if (await texts(store, session_id))[-1:] == ["done"]:
                    return
                await asyncio.sleep(0)
                continue
            while (turn := await store.turns.begin(session_id, lease)) is not None:
                await store.turns.finish(turn, lease, [said("done")], [delivery("done", hash(turn.id))], None)
            if await store.turns.release_if_idle(session_id, lease):
                return

    await asyncio.gather(*(runner(f"r{n}") for n in range(4)))
    assert await texts(store, session_id) == [*(f"q{n}" for n in range(12)), "last", "done"]
    assert len(await store.outbox.list()) == 1


async def test_what_calls_cost_is_kept_with_what_they_were_counted_as(store: Store) -> None:
    turn, lease = await begun(store)
    session_id = turn.session_id
    assert await store.turns.latest_usage(session_id) is None
    for n in (1, 2):
        usage = Usage(provider="p", model="m", input_tokens=100 * n, cached_tokens=n, counted_tokens=90)
        await store.turns.append_round(turn, lease, [], usage)
    assert await store.turns.counts("p", "m", 5) == [(90, 200), (90, 100)]
    assert await store.turns.counts("p", "m", 1) == [(90, 200)]
    assert await store.turns.counts("p", "other", 5) == []
    assert await store.turns.latest_usage(session_id) == usage


async def test_where_a_turns_files_are_kept_is_written_down_and_nothing_else_changes(store: Store) -> None:
    inbound = replace(message("look", 1), media=(MediaRef(ref="F1", kind="image", name="a.png"),))
    session_id = await store.turns.accept(inbound, NewSession())
    assert session_id is not None
    lease = await store.leases.acquire(session_lease(session_id), "me", TTL)
    assert lease is not None
    turn = await store.turns.begin(session_id, lease)
    assert turn is not None
    (before,) = await store.sessions.page(session_id)
    revision = (await store.sessions.get(session_id)).revision
    kept = MediaRef(ref="m_1", kind="image", name="a.png", width=3, height=4, size_bytes=5)
    await store.turns.keep_media(turn, lease, before.seq, (kept,))
    (after,) = await store.sessions.page(session_id)
    assert after == replace(before, media=(kept,))
    assert (await store.sessions.get(session_id)).revision > revision
    await store.leases.release(lease)
    with pytest.raises(LeaseLost):
        await store.turns.keep_media(turn, lease, before.seq, ())


async def test_a_summary_stands_for_rows_up_to_a_place_that_moves_forward_only(store: Store) -> None:
    turn, lease = await begun(store)
    await store.turns.append_round(turn, lease, [said("one"), said("two")], None)
    await store.sessions.update(turn.session_id, {"replay_from": 2})
    mark = Message(role=Role.SYSTEM, kind=Kind.COMPACTED, content="summed up")
    note = delivery("gone", 1)
    await store.turns.consolidate(turn, lease, 2, {"summary_text": "s"}, [mark], deliveries=[note])
    session = await store.sessions.get(turn.session_id)
    assert (session.consolidated_through, session.replay_from) == (2, 0)
    assert session.compaction == {"summary_text": "s"}
    assert (await texts(store, turn.session_id))[-1] == "summed up"
    assert [one.outbound and one.outbound.text for one in await store.outbox.list()] == ["gone"]
    with pytest.raises(Refused):
        await store.turns.consolidate(turn, lease, 1, {"summary_text": "older"}, [])
    assert (await store.sessions.get(turn.session_id)).compaction == {"summary_text": "s"}


async def test_a_compaction_under_a_lost_lease_writes_nothing(store: Store) -> None:
    turn, lease = await begun(store)
    await store.leases.release(lease)
    with pytest.raises(LeaseLost):
        await store.turns.consolidate(turn, lease, 1, {"summary_text": "s"}, [])
    assert (await store.sessions.get(turn.session_id)).compaction == {}


async def test_a_turn_that_waits_is_due_at_its_time_and_with_a_later_message_only(
    store: Store, clock: ManualClock
) -> None:
    turn, lease = await begun(store)
    await accept(store, "on its way already", 2)
    waiting = Waiting(reason="choice", details={"n": 1}, until=clock.now() + timedelta(minutes=5), or_message=True)
    await store.turns.suspend(turn, lease, waiting, [delivery("which?", 1)])
    assert [one.outbound and one.outbound.text for one in await store.outbox.list()] == ["which?"]
    assert await store.turns.release_if_idle(turn.session_id, lease)
    assert await store.turns.due(["slack"], 5) == []
    await accept(store, "an answer", 3)
    assert await store.turns.due(["slack"], 5) == [turn.session_id]
    lease = await lease_of(store, turn.session_id)
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert resumed.waited == Waiting(reason="choice", details={"n": 1})
    assert resumed.attempt == 1


async def test_a_turn_that_waited_in_vain_is_due_at_its_time_limit(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    await store.turns.suspend(turn, lease, Waiting(reason="choice", until=clock.now() + timedelta(minutes=5)))
    await store.leases.release(lease)
    await accept(store, "talk", 2)
    await clock.advance(299)
    assert await store.turns.due(["slack"], 5) == []
    await clock.advance(1)
    assert await store.turns.due(["slack"], 5) == [turn.session_id]


async def test_what_a_turn_had_waited_for_is_known_until_it_writes(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    await store.turns.suspend(turn, lease, Waiting(reason="choice", until=clock.now()))
    for attempt in (1, 2):
        resumed = await store.turns.begin(turn.session_id, lease)
        assert resumed is not None
        assert (resumed.attempt, resumed.waited and resumed.waited.reason) == (attempt, "choice")
    await store.turns.append_round(turn, lease, [said("x")], None)
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    assert resumed.waited is None


async def test_a_turn_set_down_right_after_its_choice_still_knows_it(store: Store, clock: ManualClock) -> None:
    turn, lease = await begun(store)
    waiting = Waiting(reason="choice", details={"n": 1}, until=clock.now() + timedelta(minutes=5), or_message=True)
    await store.turns.suspend(turn, lease, waiting)
    await accept(store, "an answer", 3)
    resumed = await store.turns.begin(turn.session_id, lease)
    assert resumed is not None
    await store.turns.suspend(resumed, lease, Waiting(reason=RESUME))
    await store.leases.release(lease)
    assert await store.turns.due(["slack"], 5) == [turn.session_id]
    again = await store.turns.begin(turn.session_id, await lease_of(store, turn.session_id))
    assert again is not None
    assert again.waited == Waiting(reason="choice", details={"n": 1})
