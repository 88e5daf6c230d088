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
        yield woken
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
