"""What every outbox promises."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.domain.errors import LeaseLost
from gateway.domain.keys import Route
from gateway.domain.outbound import Delivery, DeliveryState, Part, PartState, Ref
from gateway.ports.leases import Lease, lane_lease
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ROUTE, delivery

TTL = timedelta(seconds=30)
LANE = ROUTE.lane
PARTS = [Part(text="one", plain="one"), Part(text="two", plain="two", details={"entities": []})]


async def lane(store: Store, owner: str = "me") -> Lease:
    lease = await store.leases.acquire(lane_lease(LANE), owner, TTL)
    assert lease is not None
    return lease


async def head(store: Store, lease: Lease) -> Delivery:
    found = await store.outbox.next(LANE, lease)
    assert found is not None
    return found


async def test_a_wish_is_enqueued_once(store: Store) -> None:
    assert await store.outbox.enqueue([delivery("a", 1), delivery("b", 2), delivery("a", 1)]) == 2
    assert await store.outbox.enqueue([delivery("a", 1)]) == 0


async def test_a_lane_gives_its_deliveries_in_order_one_at_a_time(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2)])
    lease = await lane(store)
    for text in ("a", "b"):
        found = await head(store, lease)
        assert found.outbound is not None
        assert found.outbound.text == text
        (part,) = await store.outbox.save_parts(found.id, lease, PARTS[:1])
        assert await store.outbox.done(part, lease, hash="h", ref=Ref(id="1"))
    assert await store.outbox.next(LANE, lease) is None


async def test_parts_are_kept_as_first_saved(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    lease = await lane(store)
    found = await head(store, lease)
    saved = await store.outbox.save_parts(found.id, lease, PARTS)
    again = await store.outbox.save_parts(found.id, lease, [Part(text="split otherwise")])
    assert [part.part for part in again] == PARTS == [part.part for part in saved]
    assert (await head(store, lease)).parts == tuple(saved)


async def test_a_part_goes_through_its_states(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    lease = await lane(store)
    found = await head(store, lease)
    first, second = await store.outbox.save_parts(found.id, lease, PARTS)
    opening = await store.outbox.opening(first, lease)
    assert (opening.state, opening.opening_since) == (PartState.OPENING, clock.now())
    back = await store.outbox.not_opened(opening, lease, instead=PARTS[1])
    assert (back.state, back.part, back.opening_since) == (PartState.WANTED, PARTS[1], None)
    opened = await store.outbox.opened(await store.outbox.opening(back, lease), lease, Ref(id="9.1"))
    assert (opened.state, opened.ref) == (PartState.OPEN, Ref(id="9.1"))
    assert not await store.outbox.done(opened, lease, hash="h")
    assert await store.outbox.done(second, lease, hash="h", ref=Ref(id="9.2"))


async def test_the_moment_of_the_first_try_is_kept(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    lease = await lane(store)
    (part,) = await store.outbox.save_parts((await head(store, lease)).id, lease, PARTS[:1])
    first = await store.outbox.opening(part, lease)
    await clock.advance(5)
    second = await store.outbox.opening(first, lease, again=True)
    assert second.opening_since == first.opening_since
    assert (second.resent, await store.outbox.possible_duplicates()) == (1, 1)


async def test_a_finished_delivery_keeps_its_receipt_and_drops_its_body(store: Store) -> None:
    await store.outbox.enqueue([delivery("secret words", 1)])
    lease = await lane(store)
    (part,) = await store.outbox.save_parts((await head(store, lease)).id, lease, PARTS[:1])
    await store.outbox.done(part, lease, hash="h", ref=Ref(id="9.1"))
    (done,) = await store.outbox.list()
    assert (done.state, done.outbound) == (DeliveryState.DONE, None)
    assert [(p.ref, p.part) for p in done.parts] == [(Ref(id="9.1"), None)]


async def test_a_lane_is_given_back_only_when_nothing_may_go(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    lease = await lane(store)
    assert not await store.outbox.release_if_idle(LANE, lease)
    found = await head(store, lease)
    await store.outbox.defer(found.id, lease, clock.now() + timedelta(seconds=5), "later")
    assert await store.outbox.release_if_idle(LANE, lease)
    for attempt in (store.outbox.release_if_idle(LANE, lease), store.outbox.next(LANE, lease)):
        with pytest.raises(LeaseLost):
            await attempt
    await clock.advance(5)
    assert not await store.outbox.release_if_idle(LANE, await lane(store, "another"))


async def test_a_deferred_delivery_holds_its_lane_until_then(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2)])
    lease = await lane(store)
    found = await head(store, lease)
    await store.outbox.defer(found.id, lease, clock.now() + timedelta(seconds=7), "rate limited")
    assert await store.outbox.next(LANE, lease) is None
    await store.leases.release(lease)
    assert await store.outbox.due(["slack"], 10) == []
    await clock.advance(7)
    assert await store.outbox.due(["slack"], 10) == [LANE]
    later = await head(store, await lane(store))
    assert (later.id, later.attempts, later.error) == (found.id, 1, "rate limited")


async def test_a_dead_delivery_is_visible_and_its_lane_goes_on(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2)])
    lease = await lane(store)
    first = await head(store, lease)
    await store.outbox.dead(first.id, lease, "blocked")
    assert (await head(store, lease)).id != first.id
    (dead,) = await store.outbox.list(state=DeliveryState.DEAD)
    assert dead.outbound is not None
    assert (dead.error, dead.outbound.text) == ("blocked", "a")


async def test_a_dead_delivery_can_be_tried_again_at_the_end_of_its_lane(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2)])
    lease = await lane(store)
    first = await head(store, lease)
    await store.outbox.dead(first.id, lease, "blocked")
    assert await store.outbox.retry(first.id)
    assert not await store.outbox.retry(first.id)
    second = await head(store, lease)
    assert second.id != first.id
    await store.outbox.dead(second.id, lease, "x")
    assert (await head(store, lease)).id == first.id
    assert await store.outbox.enqueue([delivery("c", 3)]) == 1


async def test_a_dead_delivery_can_be_dropped(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    lease = await lane(store)
    found = await head(store, lease)
    assert not await store.outbox.drop(found.id)
    await store.outbox.dead(found.id, lease, "blocked")
    assert await store.outbox.drop(found.id)
    assert not await store.outbox.retry(found.id)
    assert await store.outbox.list(state=DeliveryState.DEAD) == []


async def test_a_worker_whose_lease_was_taken_writes_nothing(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1)])
    stale = await lane(store)
    found = await head(store, stale)
    (part,) = await store.outbox.save_parts(found.id, stale, PARTS[:1])
    await clock.advance(31)
    fresh = await lane(store, "another")
    for attempt in (
        store.outbox.next(LANE, stale),
        store.outbox.save_parts(found.id, stale, PARTS),
        store.outbox.opening(part, stale),
        store.outbox.opened(part, stale, Ref(id="1")),
        store.outbox.not_opened(part, stale),
        store.outbox.done(part, stale, hash="h"),
        store.outbox.defer(found.id, stale, clock.now(), "x"),
        store.outbox.dead(found.id, stale, "x"),
    ):
        with pytest.raises(LeaseLost):
            await attempt
    assert (await head(store, fresh)).parts[0].state is PartState.WANTED


async def test_lanes_are_due_once_each_oldest_first_unless_they_are_worked(store: Store) -> None:
    routes = [Route("slack", f"D{n}", thread=f"t{n}") for n in range(4)]
    await store.outbox.enqueue([delivery("x", n, route=route) for n, route in enumerate(routes)])
    await store.outbox.enqueue([delivery("y", 10, route=Route("slack", "D2", thread="other"))])
    await store.outbox.enqueue([delivery("y", 11, route=Route("telegram", "1"))])
    await store.leases.acquire(lane_lease("slack:D1"), "me", TTL)
    assert await store.outbox.due(["slack"], 10) == ["slack:D0", "slack:D2", "slack:D3"]
    assert await store.outbox.due(["slack"], 1) == ["slack:D0"]


async def test_keys_of_finished_deliveries_are_kept_for_seven_days(store: Store, clock: ManualClock) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2)])
    lease = await lane(store)
    (part,) = await store.outbox.save_parts((await head(store, lease)).id, lease, PARTS[:1])
    await store.outbox.done(part, lease, hash="h")
    await clock.advance(6 * 24 * 3600)
    assert await store.outbox.forget() == 0
    assert await store.outbox.enqueue([delivery("a", 1)]) == 0
    await clock.advance(2 * 24 * 3600)
    assert await store.outbox.forget() == 1
    assert [d.state for d in await store.outbox.list()] == [DeliveryState.PENDING]


async def test_a_list_can_be_narrowed_to_a_channel_and_a_state(store: Store) -> None:
    await store.outbox.enqueue([delivery("a", 1), delivery("b", 2, route=Route("telegram", "1"))])
    (found,) = await store.outbox.list(channel="telegram", state=DeliveryState.PENDING)
    assert found.route == Route("telegram", "1")
    assert await store.outbox.list(channel="telegram", state=DeliveryState.DEAD) == []
    assert len(await store.outbox.list()) == 2
