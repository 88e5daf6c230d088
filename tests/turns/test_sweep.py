"""The sweep wakes what no wake-up reached, again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from gateway.turns.sweep import Sweep
from tests.stores import ROUTE
from tests.turns.conftest import Rig, until

Woken = list[tuple[str, str]]


@asynccontextmanager
async def sweeping(rig: Rig, channels: Callable[[], Sequence[str]] = lambda: ("slack",)) -> AsyncIterator[Woken]:
    """Sweep every five seconds while the body runs; yield what was woken."""
    woken: Woken = []
    async with running(rig, channels, woken):
        yield woken


@asynccontextmanager
async def running(rig: Rig, channels: Callable[[], Sequence[str]], woken: Woken) -> AsyncIterator[Sweep]:
    """Sweep every five seconds while the body runs, and note what is woken."""

    class Noting(type(rig.wakeups)):  # type: ignore[misc]
        async def wake(self, topic: str, id: str, at: object = None) -> None:
            woken.append((str(topic), id))

    sweep = Sweep(
        turns=rig.store.turns,
        outbox=rig.store.outbox,
        media=rig.media,
        wakeups=Noting(rig.clock),
        channels=channels,
        clock=rig.clock,
        seconds=5,
    )
    task = asyncio.create_task(sweep.run())
    try:
        yield sweep
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_sweep_finds_what_no_wake_up_reached(rig: Rig) -> None:
    session_id = await rig.say("hi", 1)
    async with sweeping(rig) as woken:
        await until(lambda: bool(woken))
        assert woken == [("session", session_id)]
        await rig.dispatcher.drive(session_id)
        woken.clear()
        await until(lambda: rig.clock.sleepers == 1)
        await rig.clock.advance(5)
        await until(lambda: bool(woken))
        assert woken == [("lane", ROUTE.lane)]


async def test_a_sweep_that_fails_is_not_the_last(rig: Rig) -> None:
    session_id = await rig.say("hi", 1)
    looks = 0

    def channels() -> Sequence[str]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise ZeroDivisionError
        return ("slack",)

    async with sweeping(rig, channels) as woken:
        await until(lambda: rig.clock.sleepers == 1)
        assert (looks, woken) == (1, [])
        await rig.clock.advance(5)
        await until(lambda: bool(woken))
        assert woken == [("session", session_id)]


async def test_a_channel_that_has_just_been_opened_does_not_wait_for_the_next_sweep(rig: Rig) -> None:
    """What a dead process left is gone on with at once, and not a sweep later."""
    session_id = await rig.say("hi", 1)
    opened: list[str] = []
    woken: Woken = []
    async with running(rig, lambda: opened, woken) as sweep:
        await until(lambda: rig.clock.sleepers == 1)
        assert woken == []
        opened.append("slack")
        sweep.soon()
        await until(lambda: bool(woken))
        assert woken == [("session", session_id)]
