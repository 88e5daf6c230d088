"""What once went wrong with turns, each named for it."""

from __future__ import annotations

import asyncio
from functools import partial

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.errors import Unavailable
from gateway.domain.keys import Route
from gateway.domain.message import Kind, Message, Role, ToolCall
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import Backlog, TurnState
from gateway.ports.model import FinishReason
from gateway.ports.wakeups import Topic
from gateway.turns.listening import MOST_INTERRUPTIONS
from gateway.turns.strays import GRACE_SECONDS
from tests.clock import settle
from tests.stores import message
from tests.turns.conftest import Rig, until
from tests.turns.deaths import left_by_a_death
from tests.turns.scripted import Scripted, calling


class Slow(Scripted):
    """`wait` takes its time to clean up when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cleaning = asyncio.Event()
        self.clean = asyncio.Event()

    async def _gate(self, id: str) -> None:
        try:
            await super()._gate(id)
        finally:
            self.cleaning.set()
            await self.clean.wait()


class Stubborn(Scripted):
    """`wait` does not end when it is cancelled."""

    async def _gate(self, id: str) -> None:
        while not self.gates.setdefault(id, asyncio.Event()).is_set():
            try:
                await self.gates[id].wait()
            except asyncio.CancelledError:
                self.cancelled.append(id)


async def left(rig: Rig, n: int, *rows: Message) -> str:
    """Leave a chat of its own as a death leaves it."""
    return await left_by_a_death(rig, f"q{n}", n, *rows, route=Route("slack", f"D{n}"))


def asked(rig: Rig, times: int) -> bool:
    """Whether the model was asked so often."""
    return len(rig.model.requests) == times


async def in_a_tool(rig: Rig, tools: Scripted, mode: Busy = Busy.STEER) -> tuple[str, asyncio.Task[None]]:
    rig.tools, rig.modes = tools, BusyModes(default=mode)
    rig.build()
    rig.model.steps = [calling("wait:c1")]
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "c1" in tools.gates)
    return session_id, driving


async def test_a_second_stop_while_a_tool_cleans_up_is_no_fault(rig: Rig) -> None:
    tools = Slow()
    _, driving = await in_a_tool(rig, tools)
    await rig.intake(message("/stop", 2))
    await tools.cleaning.wait()
    await rig.intake(message("/stop", 3))
    tools.clean.set()
    await driving
    assert await rig.sent() == [ENGLISH.stopped]


async def test_a_second_interruption_while_a_tool_cleans_up_is_taken_in(rig: Rig) -> None:
    tools = Slow()
    session_id, driving = await in_a_tool(rig, tools, Busy.INTERRUPT)
    await rig.intake(message("two", 2))
    await tools.cleaning.wait()
    await rig.intake(message("three", 3))
    tools.clean.set()
    await driving
    assert (await rig.texts(session_id))[-3:] == ["two", "three", "answer to two\n\nthree"]


async def test_a_tool_that_does_not_end_holds_up_no_stop(rig: Rig) -> None:
    tools = Stubborn()
    session_id, driving = await in_a_tool(rig, tools)
    await rig.intake(message("/stop", 2))
    await settle()
    await rig.clock.advance(GRACE_SECONDS)
    await driving
    assert await rig.sent() == [ENGLISH.stopped]
    tools.open("c1")
    await rig.turning.strays.close()
    kinds = [row.kind for row in await rig.rows(session_id) if row.role is Role.TOOL]
    assert kinds == [Kind.INTERRUPTED]


async def test_what_a_continued_answer_cost_is_not_counted_twice(rig: Rig) -> None:
    rig.model.steps = [("Once upon", FinishReason.LENGTH), Unavailable("gone")]
    await rig.turn("tell", 1)
    assert len(await rig.store.turns.counts("fake", "fake:one", 10)) == 1


async def test_a_time_limit_does_not_lose_an_answer_that_is_being_continued(rig: Rig) -> None:
    rig.model.steps = [("Once upon a time", FinishReason.LENGTH)]
    session_id = await rig.say("tell", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    rig.model.gate.clear()
    await until(lambda: len(rig.model.requests) == 2)
    await rig.clock.advance(rig.options.turn_minutes * 60)
    await driving
    assert await rig.sent() == [f"Once upon a time\n\n{ENGLISH.cut_off}"]


async def test_turns_that_a_death_left_take_no_places_while_they_wait(rig: Rig) -> None:
    """They are gone on with one by one, and healthy chats are answered meanwhile."""
    ids = [await left(rig, n) for n in range(3)]
    rig.model.gate.clear()
    dispatcher = rig.new_dispatcher("two", max_concurrent=2)
    driving = [asyncio.create_task(dispatcher.drive(id)) for id in ids]
    await until(lambda: len(rig.model.requests) == 1 and sum(task.done() for task in driving) == 2)
    healthy = asyncio.create_task(dispatcher.drive(await rig.say("healthy", 50, route=Route("slack", "D50"))))
    await until(lambda: len(rig.model.requests) == 2)
    rig.model.gate.set()
    await asyncio.gather(*driving, healthy)


async def test_one_suspect_after_the_other_is_woken_by_itself(rig: Rig) -> None:
    for n in range(4):
        await left(rig, n)
    wakes = asyncio.create_task(rig.wakeups.run({Topic.SESSION: rig.dispatcher.drive}))
    await rig.wakeups.idle()
    await settle()
    await rig.wakeups.idle()
    assert [turn.state for turn in await rig.store.turns.list()] == [TurnState.DONE] * 4
    assert {turn.attempt for turn in await rig.store.turns.list()} == {2}
    wakes.cancel()
    await asyncio.gather(wakes, return_exceptions=True)


async def test_a_stop_of_a_turn_that_waits_for_others_is_obeyed_at_once(rig: Rig) -> None:
    ids = [await left(rig, n) for n in range(2)]
    rig.model.gate.clear()
    first = asyncio.create_task(rig.dispatcher.drive(ids[0]))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.dispatcher.drive(ids[1])
    await rig.intake(message("/stop", 9, route=Route("slack", "D1")))
    await rig.dispatcher.drive(ids[1])
    assert await rig.sent() == [ENGLISH.stopped]
    rig.model.gate.set()
    await first


async def test_a_draining_process_begins_no_turn_that_waited_for_others(rig: Rig) -> None:
    ids = [await left(rig, n) for n in range(2)]
    rig.model.gate.clear()
    first = asyncio.create_task(rig.dispatcher.drive(ids[0]))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.dispatcher.drive(ids[1])
    rig.dispatcher.drain()
    rig.model.gate.set()
    await first
    await rig.dispatcher.drive(ids[1])
    assert len(rig.model.requests) == 1


async def test_a_store_that_is_away_for_a_moment_is_not_a_death(rig: Rig) -> None:
    ids = [await left(rig, n) for n in range(2)]
    rig.model.gate.clear()
    suspend, failures = rig.store.turns.suspend, [Unavailable("disk full")]

    async def flaky(*args: object, **more: object) -> None:
        if failures:
            raise failures.pop()
        await suspend(*args, **more)  # type: ignore[arg-type]

    rig.store.turns.suspend = flaky  # type: ignore[method-assign]
    first = asyncio.create_task(rig.dispatcher.drive(ids[0]))
    await until(lambda: len(rig.model.requests) == 1)
    second = asyncio.create_task(rig.dispatcher.drive(ids[1]))
    await until(lambda: failures == [])
    await rig.clock.advance(2)
    await second
    rig.model.gate.set()
    await first
    await rig.dispatcher.drive(ids[1])
    assert [(turn.state, turn.attempt) for turn in await rig.store.turns.list()] == [(TurnState.DONE, 2)] * 2


async def test_a_stop_survives_a_store_that_is_away_for_a_moment(rig: Rig) -> None:
    rig.model.gate.clear()
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    backlog, failures = rig.store.turns.backlog, [Unavailable("locked")]

    async def flaky(session_id: str) -> Backlog:
        if failures:
            raise failures.pop()
        return await backlog(session_id)

    rig.store.turns.backlog = flaky  # type: ignore[method-assign]
    await rig.intake(message("/stop", 2))
    await until(lambda: failures == [])
    await rig.clock.advance(2)
    await driving
    (turn,) = await rig.store.turns.list()
    assert (turn.state, turn.attempt) == (TurnState.STOPPED, 1)


async def test_what_tools_have_done_is_stored_when_the_process_stops(rig: Rig) -> None:
    """Otherwise the model would be told that nobody knows, and might have it done again."""
    tools = rig.tools = Scripted()
    rig.build()
    rig.model.steps = [calling("write:a", "wait:b")]
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "b" in tools.gates and tools.written != [])
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)
    await rig.new_dispatcher("two").drive(session_id)
    results = [(row.tool_call_id, row.kind) for row in await rig.rows(session_id) if row.role is Role.TOOL]
    assert results == [("a", Kind.CHAT), ("b", Kind.INTERRUPTED)]
    assert tools.started == ["a", "b"]


async def test_a_stop_after_a_death_in_a_tool_marks_the_call(rig: Rig) -> None:
    call = Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="a", name="write", arguments="{}"),))
    session_id = await left(rig, 1, call)
    await rig.intake(message("/stop", 9, route=Route("slack", "D1")))
    await rig.dispatcher.drive(session_id)
    assert [(row.role, row.kind) for row in await rig.rows(session_id)] == [
        (Role.USER, Kind.CHAT), (Role.ASSISTANT, Kind.CHAT),
        (Role.TOOL, Kind.INTERRUPTED), (Role.USER, Kind.INTERRUPTED),
    ]  # fmt: skip


async def test_who_never_stops_interrupting_is_answered_in_between(rig: Rig) -> None:
    rig.modes = BusyModes(default=Busy.INTERRUPT)
    rig.build()
    rig.model.gate.clear()
    session_id = await rig.say("m0", 0)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    for n in range(1, 20):
        await until(partial(asked, rig, min(n, 1 + MOST_INTERRUPTIONS)))
        await rig.say(f"m{n}", n)
    await settle()
    assert len(rig.model.requests) == 1 + MOST_INTERRUPTIONS
    rig.model.gate.set()
    await driving
    said = [row.text for row in await rig.rows(session_id) if row.role is Role.USER]
    assert said == [f"m{n}" for n in range(20)]


async def test_a_turns_events_name_the_message_as_it_was_accepted(rig: Rig) -> None:
    await rig.turn("hi", 1)
    assert {event.message_id for event in rig.events} == {"msg:1"}


async def test_a_tools_error_is_kept_as_one(rig: Rig) -> None:
    rig.tools = Scripted()
    rig.build()
    rig.model.steps = [calling("fall:a", "look:b"), "done"]
    session_id = await rig.turn("go", 1)
    errors = [row.extra.get("is_error", False) for row in await rig.rows(session_id) if row.role is Role.TOOL]
    assert errors == [True, False]
