"""What once went wrong with turns, each named for it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.errors import Unavailable
from gateway.domain.keys import Route
from gateway.domain.message import Kind, Message, Role, ToolCall
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import Backlog, TurnState
from gateway.ports.model import FinishReason, ToolCallRequested
from gateway.ports.tools import ToolContext, ToolResult
from gateway.ports.wakeups import Topic
from gateway.turns.calling import FAILED
from gateway.turns.listening import MOST_INTERRUPTIONS
from gateway.turns.strays import GRACE_SECONDS
from tests.clock import settle
from tests.fakes import Step
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
    assert sorted(await rig.sent()) == ["answer to healthy", "answer to q0"]
    attempts = {turn.session_id: turn.attempt for turn in await rig.store.turns.list()}
    assert sorted(attempts[id] for id in ids) == [1, 1, 2]


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


async def test_a_death_while_turns_wait_for_others_does_not_count_against_them(rig: Rig) -> None:
    """They are not even begun, or they would be set aside with the one that kills."""
    ids = [await left(rig, n) for n in range(3)]
    rig.model.gate.clear()
    first = asyncio.create_task(rig.dispatcher.drive(ids[0]))
    await until(lambda: len(rig.model.requests) == 1)
    for id in ids[1:]:
        await rig.dispatcher.drive(id)
        await rig.dispatcher.drive(id)
    attempts = {turn.session_id: turn.attempt for turn in await rig.store.turns.list()}
    assert [attempts[id] for id in ids] == [2, 1, 1]
    rig.model.gate.set()
    await first
    for id in ids[1:]:
        await rig.dispatcher.drive(id)
    assert {turn.state for turn in await rig.store.turns.list()} == {TurnState.DONE}


async def test_a_session_that_is_at_work_is_not_over_however_long_it_is_silent(rig: Rig) -> None:
    """Otherwise what is said meanwhile would begin another one beside it, and no stop would reach the first."""
    rig.options = rig.options.model_copy(update={"reset_idle_minutes": 5})
    tools = Scripted()
    session_id, driving = await in_a_tool(rig, tools)
    await rig.clock.advance(360)
    assert await rig.say("how far are you?", 2) == session_id
    await rig.clock.advance(360)
    await rig.intake(message("/stop", 3))
    await driving
    assert await rig.sent() == [ENGLISH.stopped_waiting]


async def test_a_session_in_which_something_waits_is_not_over(rig: Rig) -> None:
    rig.options = rig.options.model_copy(update={"reset_idle_minutes": 5})
    rig.build()
    session_id = await rig.say("one", 1)
    await rig.clock.advance(360)
    assert await rig.say("two", 2) == session_id


async def test_a_store_that_is_away_is_not_blamed_on_the_model(rig: Rig) -> None:
    page, failures = rig.store.sessions.page, [Unavailable("disk full")]

    async def flaky(*args: object, **more: object) -> object:
        if failures:
            raise failures.pop()
        return await page(*args, **more)  # type: ignore[arg-type]

    rig.store.sessions.page = flaky  # type: ignore[method-assign, assignment]
    session_id = await rig.turn("hi", 1)
    assert await rig.sent() == []
    await rig.dispatcher.drive(session_id)
    assert await rig.sent() == ["answer to hi"]
    assert [turn.attempt for turn in await rig.store.turns.list()] == [1]


async def test_a_stop_needs_no_place(rig: Rig) -> None:
    rig.model.gate.clear()
    narrow = rig.new_dispatcher("narrow", max_concurrent=1)
    first = asyncio.create_task(narrow.drive(await rig.say("one", 1)))
    await until(lambda: len(rig.model.requests) == 1)
    other = Route("slack", "D2")
    second = asyncio.create_task(narrow.drive(await rig.say("two", 2, route=other)))
    await settle()
    await rig.intake(message("/stop", 3, route=other))
    await second
    assert await rig.sent() == [ENGLISH.stopped]
    rig.model.gate.set()
    await first
    assert await rig.sent() == [ENGLISH.stopped, "answer to one"]


async def test_the_end_of_the_process_does_not_wait_for_a_store_that_is_away(rig: Rig) -> None:
    begun = asyncio.Event()

    async def away(*_: object, **__: object) -> None:
        begun.set()
        await settle()
        raise Unavailable("locked")

    rig.store.turns.begin = away  # type: ignore[method-assign, assignment]
    rig.store.leases.release = away  # type: ignore[method-assign]
    driving = asyncio.create_task(rig.dispatcher.drive(await rig.say("hi", 1)))
    await begun.wait()
    driving.cancel()
    await asyncio.wait([driving])
    assert driving.cancelled()


async def test_calls_of_one_id_are_told_apart(rig: Rig) -> None:
    """Some servers give each call the same id, or none: both are run, and the model sees both results."""
    tools = rig.tools = Scripted()
    rig.build()
    rig.model.steps = [[ToolCallRequested(id, "write", "{}") for id in ("c", "c", "")], "done"]
    session_id = await rig.turn("go", 1)
    ids = [call.id for row in await rig.rows(session_id) for call in row.tool_calls]
    assert len(set(ids)) == 3
    assert "" not in ids
    assert [row.tool_call_id for row in await rig.rows(session_id) if row.role is Role.TOOL] == ids
    assert len(tools.written) == 3


class Rude(Scripted):
    """`look` ends the process, and `write` returns what is no result."""

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        if call.name == "look":
            raise SystemExit(3)
        return "not a result"  # type: ignore[return-value]


async def test_a_tool_that_exits_or_returns_nonsense_has_failed_and_ends_nothing(rig: Rig) -> None:
    rig.tools = Rude()
    rig.build()
    rig.model.steps = [calling("look:a", "write:b"), "done"]
    session_id = await rig.turn("go", 1)
    assert [row.text for row in await rig.rows(session_id) if row.role is Role.TOOL] == [FAILED, FAILED]
    assert await rig.sent() == ["done"]


@pytest.mark.parametrize(
    "steps", [[("It is 42.", FinishReason.LENGTH), "NO_REPLY"], [("NO_REPLY", FinishReason.LENGTH)]]
)
async def test_the_marker_of_silence_is_never_shown(rig: Rig, steps: list[Step]) -> None:
    rig.model.steps = steps
    await rig.turn("hi", 1)
    assert "NO_REPLY" not in "".join(await rig.sent())
