"""Breaking off a step from outside: nothing is lost between two steps, and nobody else's ending is taken for it."""

from __future__ import annotations

import asyncio

import pytest

from gateway.turns.breaks import Breaks, Broken, Why


async def broken(breaks: Breaks, why: Why) -> Why:
    """Begin a step, break it off, and return why it says it was."""
    inside = asyncio.Event()

    async def step() -> None:
        async with breaks.step():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(step())
    await inside.wait()
    breaks.ask(why)
    with pytest.raises(Broken) as caught:
        await task
    return caught.value.why


@pytest.mark.parametrize("why", list(Why))
async def test_a_step_that_runs_is_broken_off(why: Why) -> None:
    assert await broken(Breaks(), why) is why


async def test_what_is_asked_between_two_steps_meets_the_next_one() -> None:
    breaks = Breaks()
    async with breaks.step():
        pass
    breaks.ask(Why.STOP)
    for _ in range(2):
        with pytest.raises(Broken):
            async with breaks.step():
                pytest.fail("the step should not have begun")
    breaks.looked()
    async with breaks.step():
        pass


async def test_a_time_limit_outranks_a_look_and_is_not_forgotten_by_looking() -> None:
    breaks = Breaks()
    breaks.ask(Why.TIME_IS_UP)
    breaks.ask(Why.STOP)
    breaks.looked()
    with pytest.raises(Broken) as caught:
        async with breaks.step():
            pass
    assert caught.value.why is Why.TIME_IS_UP


async def test_a_time_limit_inside_a_step_is_the_steps_own() -> None:
    breaks = Breaks()
    with pytest.raises(TimeoutError):
        async with breaks.step(), asyncio.timeout(0):
            await asyncio.Event().wait()
    async with breaks.step():
        pass


async def test_being_cancelled_is_not_being_broken_off() -> None:
    breaks = Breaks()
    inside = asyncio.Event()

    async def step() -> None:
        async with breaks.step():
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(step())
    await inside.wait()
    task.cancel()
    breaks.ask(Why.STOP)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_step_that_ends_just_then_keeps_what_it_did() -> None:
    breaks = Breaks()

    async def work() -> int:
        breaks.ask(Why.STOP)
        return 5

    assert await breaks.within(work) == 5
    with pytest.raises(Broken):
        async with breaks.step():
            pass


async def test_a_second_break_while_a_step_takes_its_time_to_end_is_no_error() -> None:
    """Somebody says stop twice while a tool cleans up."""
    breaks = Breaks()
    inside, cleaning, clean = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def step() -> None:
        async with breaks.step():
            inside.set()
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await clean.wait()

    task = asyncio.create_task(step())
    await inside.wait()
    breaks.ask(Why.INPUT)
    await cleaning.wait()
    breaks.ask(Why.STOP)
    clean.set()
    with pytest.raises(Broken):
        await task


async def test_input_breaks_nothing_off_where_it_may_not_and_a_stop_does() -> None:
    breaks = Breaks()
    breaks.may_interrupt = False
    breaks.ask(Why.INPUT)

    async def work() -> str:
        return "done"

    assert await breaks.within(work) == "done"
    breaks.ask(Why.STOP)
    with pytest.raises(Broken):
        await breaks.within(work)
