"""Blocking calls end before anybody goes on, cancelled or not."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from gateway.domain.errors import NotFound, Unavailable
from gateway.media.blocking import blocking, finished


async def test_a_cancellation_waits_for_the_thread() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), []

    def write() -> None:
        begun.set()
        go_on.wait(10)
        done.append(True)

    task = asyncio.create_task(blocking(write))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(3):
        task.cancel()
        await asyncio.wait({task}, timeout=0.02)
        assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [True]


async def test_what_goes_wrong_after_a_cancellation_is_no_lost_error() -> None:
    async def fail() -> None:
        await go_on.wait()
        raise NotFound("too late to matter")

    lost, go_on = [], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: lost.append(context))
    task = asyncio.create_task(finished(fail()))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    go_on.set()
    await asyncio.wait({task})
    assert task.cancelled()
    del task
    gc.collect()
    assert lost == []


async def test_what_the_system_refuses_may_work_later_and_what_we_raise_is_raised() -> None:
    def fail(error: Exception) -> None:
        raise error

    with pytest.raises(Unavailable, match="at the moment: No space left on device"):
        await blocking(fail, OSError(28, "No space left on device"))
    with pytest.raises(NotFound):
        await blocking(fail, NotFound("gone"))
