"""What every observer promises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.events.recent import RecentEvents
from gateway.ports.observer import Event, EventFilter, Observer
from tests.clock import ManualClock, settle

EVERYTHING = EventFilter()


@pytest.fixture(params=["recent"])
def observer(request: pytest.FixtureRequest) -> Observer:
    assert request.param == "recent"
    return RecentEvents(ManualClock(), kept=20)


async def following(
    observer: Observer, heard: list[Event], after_id: int | None = None, filter: EventFilter = EVERYTHING
) -> asyncio.Task[None]:
    """Put what an observer tells into a list; return the task once it follows."""

    async def follow() -> None:
        async for event in observer.follow(after_id, filter):
            heard.append(event)

    task = asyncio.create_task(follow())
    await settle()
    return task


async def ended(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_each_follower_hears_everything_in_order_with_ids_that_grow(observer: Observer) -> None:
    first: list[Event] = []
    second: list[Event] = []
    tasks = [await following(observer, first), await following(observer, second)]
    for n in range(5):
        observer.emit(Event(kind=f"k{n}"))
    await settle()
    assert [event.kind for event in first] == [event.kind for event in second] == ["k0", "k1", "k2", "k3", "k4"]
    ids = [event.id or 0 for event in first]
    assert ids == sorted(set(ids))
    await ended(*tasks)


async def test_who_comes_back_hears_what_was_missed(observer: Observer) -> None:
    heard: list[Event] = []
    task = await following(observer, heard)
    observer.emit(Event(kind="seen"))
    await settle()
    await ended(task)
    observer.emit(Event(kind="missed"))
    again: list[Event] = []
    task = await following(observer, again, after_id=heard[-1].id)
    observer.emit(Event(kind="new"))
    await settle()
    assert [event.kind for event in again] == ["missed", "new"]
    await ended(task)


async def test_a_follower_hears_only_what_it_asked_for(observer: Observer) -> None:
    heard: list[Event] = []
    task = await following(observer, heard, filter=EventFilter(session_key="slack:D1", kind="finished"))
    for key in ("slack:D1", "slack:D2"):
        for kind in ("started", "finished"):
            observer.emit(Event(kind=kind, session_key=key))
    await settle()
    assert [(event.session_key, event.kind) for event in heard] == [("slack:D1", "finished")]
    await ended(task)


async def test_a_transient_event_has_no_id_and_is_not_told_again(observer: Observer) -> None:
    heard: list[Event] = []
    task = await following(observer, heard)
    observer.emit(Event(kind="delta", is_durable=False))
    await settle()
    assert [(event.kind, event.id) for event in heard] == [("delta", None)]
    again: list[Event] = []
    late = await following(observer, again, after_id=0)
    assert again == []
    await ended(task, late)


async def test_emitting_never_waits_on_a_follower_that_does_not_listen(observer: Observer) -> None:
    events = observer.follow(0, EVERYTHING)
    observer.emit(Event(kind="first"))
    assert (await _next(events)).kind == "first"
    for n in range(1_000):
        observer.emit(Event(kind=f"k{n}"))
    # It misses the oldest, and goes on with what is still kept.
    assert (await _next(events)).kind == "k980"


async def _next(events: AsyncIterator[Event]) -> Event:
    return await anext(events)
