"""What every store of leases promises."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from gateway.domain.errors import LeaseLost, Unavailable
from gateway.ports.leases import Lease, held, renewed
from gateway.store import Store
from tests.clock import ManualClock, settle

TTL = timedelta(seconds=30)


async def test_a_name_is_granted_to_one_at_a_time(store: Store) -> None:
    granted = await asyncio.gather(*(store.leases.acquire("a", f"owner{n}", TTL) for n in range(20)))
    assert sum(lease is not None for lease in granted) == 1
    assert await store.leases.acquire("b", "owner", TTL) is not None


async def test_not_even_its_holder_is_granted_a_name_twice(store: Store) -> None:
    assert await store.leases.acquire("a", "owner", TTL) is not None
    assert await store.leases.acquire("a", "owner", TTL) is None


async def test_tokens_grow_with_each_change_of_hands(store: Store, clock: ManualClock) -> None:
    tokens = []
    for _ in range(3):
        lease = await store.leases.acquire("a", "owner", TTL)
        assert lease is not None
        tokens.append(lease.token)
        await store.leases.release(lease)
    await store.leases.acquire("a", "owner", TTL)
    await clock.advance(31)
    lease = await store.leases.acquire("a", "other", TTL)
    assert lease is not None
    assert [*tokens, lease.token] == [1, 2, 3, 5]


async def test_an_expired_lease_may_be_taken_and_then_no_longer_renewed(store: Store, clock: ManualClock) -> None:
    first = await store.leases.acquire("a", "one", TTL)
    assert first is not None
    await clock.advance(29)
    assert await store.leases.acquire("a", "two", TTL) is None
    first = await store.leases.renew(first, TTL)
    await clock.advance(29)
    assert await store.leases.acquire("a", "two", TTL) is None
    await clock.advance(2)
    assert await store.leases.acquire("a", "two", TTL) is not None
    with pytest.raises(LeaseLost):
        await store.leases.renew(first, TTL)


async def test_a_stale_release_does_not_free_the_new_holders_name(store: Store, clock: ManualClock) -> None:
    first = await store.leases.acquire("a", "one", TTL)
    assert first is not None
    await clock.advance(31)
    await store.leases.acquire("a", "two", TTL)
    await store.leases.release(first)
    assert await store.leases.acquire("a", "three", TTL) is None


async def test_a_released_lease_cannot_be_renewed(store: Store) -> None:
    lease = await store.leases.acquire("a", "one", TTL)
    assert lease is not None
    await store.leases.release(lease)
    with pytest.raises(LeaseLost):
        await store.leases.renew(lease, TTL)


async def test_holders_are_listed_by_prefix(store: Store, clock: ManualClock) -> None:
    for name in ("session:1", "session:2", "lane:x", "sessionless"):
        await store.leases.acquire(name, "me", TTL)
    assert [lease.name for lease in await store.leases.holders("session:")] == ["session:1", "session:2"]
    await clock.advance(31)
    assert await store.leases.holders("") == []


async def test_a_body_is_cancelled_once_its_lease_is_lost(store: Store, clock: ManualClock) -> None:
    lease = await store.leases.acquire("a", "one", TTL)
    assert lease is not None
    entered = asyncio.Event()

    async def body() -> None:
        async with renewed(store.leases, lease, TTL, clock):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await entered.wait()
    await settle()
    await store.leases.release(lease)
    await clock.advance(10)
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(task, 30)


async def test_a_lease_is_kept_while_its_body_runs(store: Store, clock: ManualClock) -> None:
    lease = await store.leases.acquire("a", "one", TTL)
    assert lease is not None
    async with renewed(store.leases, lease, TTL, clock):
        for _ in range(12):
            await clock.advance(10)
            assert await store.leases.acquire("a", "two", TTL) is None


async def test_a_renewal_that_cannot_be_stored_is_tried_again(store: Store, clock: ManualClock) -> None:
    lease = await store.leases.acquire("a", "one", TTL)
    assert lease is not None
    renew, failures, renewals = store.leases.renew, [Unavailable("disk full")] * 2, 0

    async def flaky(lease: Lease, ttl: timedelta) -> Lease:
        nonlocal renewals
        renewals += 1
        if failures:
            raise failures.pop()
        return await renew(lease, ttl)

    store.leases.renew = flaky  # type: ignore[method-assign]
    async with renewed(store.leases, lease, TTL, clock):
        for n in range(5):
            await clock.advance(10)
            # A write that comes after the renewal's, so that it is done.
            await store.leases.acquire(f"other{n}", "one", TTL)
            await settle()
    assert renewals == 5


async def test_a_lease_that_is_held_is_given_back_at_the_end_unless_that_was_done_already(
    store: Store, clock: ManualClock
) -> None:
    for is_given_back in (False, True):
        lease = await store.leases.acquire("x", "me", TTL)
        assert lease is not None
        async with held(store.leases, lease, TTL, clock) as holding:
            holding.is_given_back = is_given_back
        assert bool(await store.leases.holders("x")) == is_given_back
