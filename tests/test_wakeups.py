"""Wake-ups in one process: hints that are never doubled, and handlers that never overlap for one id."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from loguru import logger

from gateway.ports.wakeups import Signal, Topic
from gateway.wakeups.local import LocalWakeups
from tests.clock import ManualClock, settle


class Recorder:
    """A handler that notes whom it was called for, and can be held."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.finished: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def __call__(self, id: str) -> None:
        self.calls.append(id)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        self.finished.append(id)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@asynccontextmanager
async def running(wakeups: LocalWakeups, handler: Callable[[str], object]) -> AsyncIterator[None]:
    task = asyncio.create_task(wakeups.run({Topic.SESSION: handler}))  # type: ignore[dict-item]
    await settle()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_wake_calls_the_handler_of_its_topic(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        await wakeups.wake(Topic.SESSION, "a")
        await wakeups.wake(Topic.LANE, "b")
        await settle()
    assert handler.calls == ["a"]


async def test_a_wake_before_the_start_is_kept(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    await wakeups.wake(Topic.SESSION, "a")
    async with running(wakeups, handler):
        await settle()
    assert handler.calls == ["a"]


async def test_an_id_woken_while_it_is_handled_is_handled_once_more_and_never_twice_at_once(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        handler.gate.clear()
        for _ in range(5):
            await wakeups.wake(Topic.SESSION, "a")
            await settle()
        assert handler.calls == ["a"]
        handler.gate.set()
        await settle()
        assert handler.calls == ["a", "a"]


async def test_one_held_id_holds_no_other(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        handler.gate.clear()
        for id in "abc":
            await wakeups.wake(Topic.SESSION, id)
        await settle()
        assert handler.calls == ["a", "b", "c"]


async def test_a_timed_wake_waits_for_its_moment_and_the_earliest_wins(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        for seconds in (30, 10, 20):
            await wakeups.wake(Topic.SESSION, "a", at=clock.now() + timedelta(seconds=seconds))
        await clock.advance(9)
        assert handler.calls == []
        await clock.advance(1)
        assert handler.calls == ["a"]
        await clock.advance(60)
        assert handler.calls == ["a"]


async def test_a_handler_that_raises_can_be_woken_again(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        handler.error = ValueError("no")
        await wakeups.wake(Topic.SESSION, "a")
        await settle()
        handler.error = None
        await wakeups.wake(Topic.SESSION, "a")
        await settle()
    assert handler.finished == ["a"]


async def test_cancelling_ends_handlers_and_timers_and_leaves_no_task(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    before = asyncio.all_tasks()
    async with running(wakeups, handler):
        handler.gate.clear()
        await wakeups.wake(Topic.SESSION, "a")
        await wakeups.wake(Topic.SESSION, "b", at=clock.now() + timedelta(hours=1))
        await settle()
    assert handler.calls == ["a"]
    assert handler.finished == []
    assert asyncio.all_tasks() == before


async def test_idle_returns_once_all_that_was_woken_is_handled(clock: ManualClock) -> None:
    wakeups, handler = LocalWakeups(clock), Recorder()
    async with running(wakeups, handler):
        handler.gate.clear()
        await wakeups.wake(Topic.SESSION, "a")
        await settle()
        await wakeups.wake(Topic.SESSION, "a")
        idle = asyncio.create_task(wakeups.idle())
        await settle()
        assert not idle.done()
        handler.gate.set()
        await asyncio.wait_for(idle, 30)
        assert handler.finished == ["a", "a"]


async def test_a_handler_does_not_inherit_what_its_waker_binds_to_its_log_lines(clock: ManualClock) -> None:
    wakeups, lines = LocalWakeups(clock), []

    async def handler(id: str) -> None:
        logger.info("handled")

    sink = logger.add(lambda message: lines.append(message.record["extra"]), level="INFO")
    async with running(wakeups, handler):
        with logger.contextualize(turn="another"):
            await wakeups.wake(Topic.SESSION, "a")
        await settle()
    logger.remove(sink)
    assert lines == [{}]


async def test_a_signal_reaches_whoever_runs_the_session(clock: ManualClock) -> None:
    wakeups = LocalWakeups(clock)
    got: list[Signal] = []
    await wakeups.signal("s", Signal.STOP)
    wakeups.on_signal("s", got.append)
    await wakeups.signal("s", Signal.STOP)
    wakeups.on_signal("s", None)
    await wakeups.signal("s", Signal.STOP)
    assert got == [Signal.STOP]
