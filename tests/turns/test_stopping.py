"""Stop stops: wherever the turn is, from beside it, once, and with a word on what becomes of what waited."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.decoration import STOPPED
from gateway.domain.errors import LeaseLost
from gateway.domain.keys import Route
from gateway.domain.message import Kind
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import TurnState, Waiting
from gateway.ports.leases import session_lease
from gateway.ports.wakeups import Signal, Topic
from tests.clock import settle
from tests.stores import NOON, ROUTE, message
from tests.turns.conftest import Rig, until
from tests.turns.deaths import left_by_a_death
from tests.turns.scripted import Scripted, calling


async def at_the_model(rig: Rig, text: str = "one") -> tuple[str, asyncio.Task[None]]:
    """Bring a session into a call of the model that does not end."""
    rig.model.gate.clear()
    session_id = await rig.say(text, 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    return session_id, driving


async def states(rig: Rig) -> list[TurnState]:
    return [turn.state for turn in reversed(await rig.store.turns.list())]


async def test_a_stop_breaks_off_the_model(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    await rig.intake(message("/stop", 2))
    await driving
    assert await states(rig) == [TurnState.STOPPED]
    assert await rig.sent() == [ENGLISH.stopped]
    one, mark = await rig.rows(session_id)
    assert (one.text, mark.kind) == ("one", Kind.INTERRUPTED)
    assert await rig.store.leases.holders() == []
    assert rig.told()[-1] == "stopped"
    assert rig.events[-1].details == {"by": "U1", "waiting": 0}


async def test_a_stop_breaks_off_a_tool_and_keeps_the_rounds_that_are_finished(rig: Rig) -> None:
    """Three rounds are done, the fourth is in a tool: all of it stays, and the cut is marked."""
    tools = rig.tools = Scripted()
    rig.build()
    rig.model.steps = [*(calling(f"look:r{n}") for n in range(3)), calling("look:a", "wait:b", "write:c")]
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "b" in tools.gates and tools.written != [])
    await rig.intake(message("!STOP", 2))
    await driving
    assert tools.cancelled == ["b"]
    rows = await rig.rows(session_id)
    results = [(row.tool_call_id, row.kind) for row in rows if row.role.value == "tool"]
    assert results == [
        ("r0", Kind.CHAT), ("r1", Kind.CHAT), ("r2", Kind.CHAT),
        ("a", Kind.CHAT), ("b", Kind.INTERRUPTED), ("c", Kind.CHAT),
    ]  # fmt: skip
    assert rows[-1].kind is Kind.INTERRUPTED
    await rig.turn("and now?", 3)
    sent = rig.model.requests[-1].messages
    assert [m.text for m in sent if m.role.value == "user"] == ["go", f"{STOPPED}\n\nand now?"]


async def test_what_waited_is_kept_in_its_order_and_not_answered(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    await rig.intake(message("three", 3, at=NOON + timedelta(seconds=3)))
    await rig.intake(message("two", 2, at=NOON + timedelta(seconds=2)))
    await rig.intake(message("/stop", 4))
    await driving
    await rig.dispatcher.drive(session_id)
    assert await rig.sent() == [ENGLISH.stopped_waiting]
    assert (await rig.texts(session_id))[:3] == ["one", "two", "three"]
    assert len(rig.model.requests) == 1
    rig.model.gate.set()
    await rig.turn("four", 5)
    assert [m.text for m in rig.model.requests[-1].messages] == [f"one\n\ntwo\n\nthree\n\n{STOPPED}\n\nfour"]


async def test_a_message_after_the_stop_is_answered(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    await rig.intake(message("/stop", 2))
    await rig.intake(message("but this", 3))
    rig.model.gate.set()
    await driving
    await rig.dispatcher.drive(session_id)
    assert (await rig.sent())[0] == ENGLISH.stopped
    assert (await rig.sent())[-1].endswith("but this")


async def test_a_message_after_a_stop_of_what_waited_is_answered_and_the_stop_is_told(rig: Rig) -> None:
    session_id = await rig.say("delete everything", 1)
    await rig.intake(message("/stop", 2))
    await rig.intake(message("/stop", 3))
    await rig.say("hello", 4)
    await rig.dispatcher.drive(session_id)
    assert (await rig.sent())[0] == ENGLISH.stopped
    assert len(await rig.sent()) == 2
    assert [m.text for m in rig.model.requests[0].messages] == [f"delete everything\n\n{STOPPED}\n\nhello"]


async def test_a_stop_of_what_only_waits_is_obeyed_without_the_model(rig: Rig) -> None:
    session_id = await rig.say("one", 1)
    await rig.intake(message("/stop", 2))
    await rig.dispatcher.drive(session_id)
    assert rig.model.requests == []
    assert await states(rig) == [TurnState.STOPPED]
    assert await rig.sent() == [ENGLISH.stopped]


async def test_where_nothing_runs_there_is_nothing_to_stop(rig: Rig) -> None:
    await rig.intake(message("/stop", 1))
    await rig.turn("one", 2)
    await rig.intake(message("/stop", 3))
    assert await rig.sent() == [ENGLISH.nothing_to_stop, "answer to one", ENGLISH.nothing_to_stop]


async def test_a_stop_that_comes_again_stops_nothing_more(rig: Rig) -> None:
    """A platform that saw no answer repeats the event, perhaps when another turn runs."""
    await rig.intake(message("/stop", 9))
    session_id, driving = await at_the_model(rig)
    await rig.intake(message("/stop", 9))
    rig.model.gate.set()
    await driving
    assert (await rig.texts(session_id))[-1] == "answer to one"
    assert await rig.sent() == [ENGLISH.nothing_to_stop, "answer to one"]


async def test_a_stop_of_one_chat_leaves_another_alone(rig: Rig) -> None:
    _, driving = await at_the_model(rig)
    other = asyncio.create_task(rig.dispatcher.drive(await rig.say("other", 5, route=Route("slack", "D2"))))
    await until(lambda: len(rig.model.requests) == 2)
    await rig.intake(message("/stop", 2))
    await driving
    rig.model.gate.set()
    await other
    assert await rig.sent() == [ENGLISH.stopped, "answer to other"]


async def test_a_stop_whose_signal_is_lost_is_found_at_the_next_write(rig: Rig) -> None:
    """As where another replica runs the turn and no signal gets through: the store refuses the answer."""
    session_id, driving = await at_the_model(rig)
    await rig.store.turns.request_stop(session_id, "U1")
    rig.model.gate.set()
    await driving
    assert await states(rig) == [TurnState.STOPPED]
    assert await rig.sent() == [ENGLISH.stopped]
    assert "answer to one" not in await rig.texts(session_id)


async def test_a_stopped_turn_counts_what_its_answer_cost(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    rig.model.input_tokens = 77
    await rig.store.turns.request_stop(session_id, "U1")
    rig.model.gate.set()
    await driving
    usage = await rig.store.turns.latest_usage(session_id)
    assert usage is not None
    assert usage.input_tokens == 77


async def test_a_signal_for_a_turn_that_is_over_stops_nothing(rig: Rig) -> None:
    """A hint that comes late, or for nothing at all, only makes the turn look."""
    tools = rig.tools = Scripted()
    rig.build()
    session_id, driving = await at_the_model(rig)
    await rig.wakeups.signal(session_id, Signal.STOP)
    await until(lambda: len(rig.model.requests) == 2)
    rig.model.gate.set()
    await driving
    assert tools.started == []
    assert await rig.texts(session_id) == ["one", "answer to one"]


async def test_the_cancelled_turn_writes_nothing_afterwards(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    (turn,) = await rig.store.turns.list()
    (lease,) = await rig.store.leases.holders(session_lease(session_id))
    await rig.intake(message("/stop", 2))
    await driving
    before = await rig.texts(session_id)
    with pytest.raises(LeaseLost):
        await rig.store.turns.finish(turn, lease, [], [], None)
    assert await rig.texts(session_id) == before


async def test_a_waiting_choice_is_stopped_too(rig: Rig) -> None:
    session_id = await rig.say("one", 1)
    lease = await rig.store.leases.acquire(session_lease(session_id), "x", timedelta(seconds=30))
    assert lease is not None
    turn = await rig.store.turns.begin(session_id, lease)
    assert turn is not None
    await rig.store.turns.suspend(turn, lease, Waiting(reason="choice"))
    await rig.store.leases.release(lease)
    await rig.dispatcher.drive(session_id)
    assert await states(rig) == [TurnState.WAITING]
    await rig.intake(message("/stop", 2))
    assert await rig.store.turns.due(["slack"], 5) == [session_id]
    await rig.dispatcher.drive(session_id)
    assert await states(rig) == [TurnState.STOPPED]
    assert await rig.sent() == [ENGLISH.stopped]


async def test_a_stop_that_a_dead_process_left_is_obeyed_by_the_next(rig: Rig) -> None:
    session_id, died = await at_the_model(rig)
    (lease,) = await rig.store.leases.holders(session_lease(session_id))
    await rig.store.turns.request_stop(session_id, "U1")
    await rig.store.leases.release(lease)
    await rig.new_dispatcher("two").drive(session_id)
    assert await states(rig) == [TurnState.STOPPED]
    assert len(rig.model.requests) == 1
    died.cancel()
    await asyncio.gather(died, return_exceptions=True)


async def test_a_stopped_turn_does_not_wait_for_others_that_a_death_left(rig: Rig) -> None:
    """They are gone on with one at a time; one that is only to be ended endangers nobody."""
    ids = [await left_by_a_death(rig, "x", n, route=Route("slack", f"D{n}")) for n in range(2)]
    rig.model.gate.clear()
    first = asyncio.create_task(rig.dispatcher.drive(ids[0]))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.intake(message("/stop", 9, route=Route("slack", "D1")))
    await rig.dispatcher.drive(ids[1])
    assert await rig.sent() == [ENGLISH.stopped]
    rig.model.gate.set()
    await first


@pytest.mark.parametrize("mode", list(Busy))
async def test_a_stop_stops_in_every_mode(rig: Rig, mode: Busy) -> None:
    rig.modes = BusyModes(default=mode)
    rig.build()
    rig.model.gate.clear()
    wakes = asyncio.create_task(rig.wakeups.run({Topic.SESSION: rig.dispatcher.drive}))
    await rig.say("one", 1)
    await settle()
    await rig.clock.advance(3)
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    await settle()
    await rig.intake(message("/stop", 3))
    await settle()
    await rig.wakeups.idle()
    wakes.cancel()
    await asyncio.gather(wakes, return_exceptions=True)
    assert await states(rig) == [TurnState.STOPPED]
    assert len(await rig.sent()) == 1
    session_id = (await rig.store.sessions.get(ROUTE.key)).id
    assert (await rig.texts(session_id))[:2] == ["one", "two"]


async def test_a_stop_is_kept_out_of_the_history(rig: Rig) -> None:
    session_id, driving = await at_the_model(rig)
    await rig.intake(replace(message("/stop", 2), addresses_bot=True))
    await driving
    assert "/stop" not in await rig.texts(session_id)


async def test_active_maps_are_empty_after_a_hundred_turns_of_every_ending(rig: Rig) -> None:
    """Case F8: finished, failed, stopped and cancelled turns leave nothing behind."""
    wakes = asyncio.create_task(rig.wakeups.run({Topic.SESSION: rig.dispatcher.drive}))
    for n in range(100):
        route = Route("slack", f"D{n}")
        rig.model.steps = [ZeroDivisionError()] if n % 4 == 1 else ["NO_REPLY"] if n % 4 == 2 else []
        await rig.intake(message("hi", 1_000 + n, route=route))
        if n % 4 == 3:
            await rig.intake(message("/stop", 2_000 + n, route=route))
        await rig.wakeups.idle()
    assert rig.wakeups._receivers == {}
    assert rig.wakeups._running == {}
    assert rig.clock.sleepers == 0
    wakes.cancel()
    await asyncio.gather(wakes, return_exceptions=True)
