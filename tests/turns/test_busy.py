"""A second message while the bot is at work: heard in every mode, once, in the platform's order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.busy import LONGEST_SETTLE, Busy, BusyModes, settles_at
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import Backlog
from gateway.ports.wakeups import Topic
from tests.clock import settle
from tests.stores import NOON, ROUTE, message
from tests.turns.conftest import Rig, until
from tests.turns.scripted import Scripted, calling


def busy(rig: Rig, mode: Busy, tools: Scripted | None = None) -> Rig:
    """Return the rig with a mode for all chats, and perhaps with tools."""
    rig.modes = BusyModes(default=mode)
    rig.tools = tools or rig.tools
    rig.build()
    return rig


def asked(rig: Rig) -> list[list[str]]:
    """What each request's user messages say, in order."""
    return [[m.text for m in request.messages if m.role.value == "user"] for request in rig.model.requests]


async def in_a_tool(rig: Rig, tools: Scripted, first: str = "one") -> tuple[str, asyncio.Task[None]]:
    """Bring a session into a tool that waits; return its id and the task that drives it."""
    rig.model.steps = [calling("wait:c1")]
    session_id = await rig.say(first, 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "c1" in tools.gates)
    return session_id, driving


async def test_steered_input_joins_at_the_next_tool_boundary(rig: Rig) -> None:
    tools = Scripted()
    busy(rig, Busy.STEER, tools)
    session_id, driving = await in_a_tool(rig, tools)
    await rig.say("two", 2, route=replace(ROUTE, reply_to="m2"))
    await rig.say("three", 3, route=replace(ROUTE, reply_to="m3"))
    tools.open("c1")
    await driving
    assert len(rig.model.requests) == 2
    assert [row.role.value for row in await rig.rows(session_id)] == [
        "user", "assistant", "tool", "user", "user", "assistant",
    ]  # fmt: skip
    assert asked(rig)[1] == ["one", "two\n\nthree"]
    (delivery,) = await rig.store.outbox.list()
    assert delivery.route.reply_to == "m3"
    assert rig.told().count("joined") == 1


@pytest.mark.parametrize("mode", [Busy.STEER, Busy.QUEUE, Busy.BURST])
async def test_what_comes_while_the_model_answers_is_the_next_turn(rig: Rig, mode: Busy) -> None:
    """Case F3: a second message ends nothing and is not lost."""
    busy(rig, mode)
    rig.model.gate.clear()
    session_id = await rig.say("one", 1)
    await rig.clock.advance(10)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    await rig.say("three", 3)
    rig.model.gate.set()
    await driving
    await rig.clock.advance(10)
    await rig.dispatcher.drive(session_id)
    assert await rig.texts(session_id) == ["one", "answer to one", "two", "three", "answer to two\n\nthree"]


async def test_queued_input_waits_for_the_next_turn_also_at_a_tool_boundary(rig: Rig) -> None:
    tools = Scripted()
    busy(rig, Busy.QUEUE, tools)
    session_id, driving = await in_a_tool(rig, tools)
    await rig.say("two", 2)
    tools.open("c1")
    await driving
    texts = await rig.texts(session_id)
    assert texts.index("two") == len(texts) - 2
    assert asked(rig)[1] == ["one"]


async def test_an_interruption_breaks_the_model_off_and_goes_on_with_both(rig: Rig) -> None:
    busy(rig, Busy.INTERRUPT)
    rig.model.gate.clear()
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    await until(lambda: len(rig.model.requests) == 2)
    rig.model.gate.set()
    await driving
    assert asked(rig) == [["one"], ["one\n\ntwo"]]
    assert await rig.texts(session_id) == ["one", "two", "answer to one\n\ntwo"]


async def test_an_interruption_cuts_a_tool_off_and_says_so_to_the_model(rig: Rig) -> None:
    tools = Scripted()
    busy(rig, Busy.INTERRUPT, tools)
    rig.model.steps = [calling("look:c0", "wait:c1")]
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "c1" in tools.gates)
    await rig.say("two", 2)
    await driving
    assert tools.cancelled == ["c1"]
    rows = await rig.rows(session_id)
    assert [(row.role.value, row.kind) for row in rows[1:4]] == [
        ("assistant", Kind.CHAT), ("tool", Kind.CHAT), ("tool", Kind.INTERRUPTED),
    ]  # fmt: skip
    assert rows[2].text == "look c0 done"
    assert (await rig.texts(session_id))[-2:] == ["two", "answer to two"]


@pytest.mark.parametrize("mode", list(Busy))
async def test_each_text_reaches_the_model_once_in_the_platforms_order(rig: Rig, mode: Busy) -> None:
    """Cases F1 and F3: twenty messages while it works, in whatever mode."""
    tools = Scripted()
    busy(rig, mode, tools)
    rig.model.steps = [calling(f"look:c{n}") for n in range(12)]
    wakes = asyncio.create_task(rig.wakeups.run({Topic.SESSION: rig.dispatcher.drive}))
    for n in range(20):
        await rig.intake(message(f"m{n:02}", n, at=NOON + timedelta(seconds=n)))
        for _ in range(n % 7):
            await asyncio.sleep(0)
        await rig.clock.advance(0.3)
    await rig.clock.advance(60)
    await rig.wakeups.idle()
    wakes.cancel()
    await asyncio.gather(wakes, return_exceptions=True)
    session_id = (await rig.store.sessions.get(ROUTE.key)).id
    said = [row.text for row in await rig.rows(session_id) if row.role.value == "user"]
    assert said == [f"m{n:02}" for n in range(20)]
    last = "\n\n".join(asked(rig)[-1])
    assert [last.count(text) for text in said] == [1] * 20
    assert await rig.store.leases.holders() == []


async def test_a_burst_is_one_turn_once_it_has_settled(rig: Rig) -> None:
    busy(rig, Busy.BURST)
    session_id = await rig.say("one", 1)
    for n, text in enumerate(["two", "three"], 2):
        await rig.clock.advance(1.5)
        await rig.dispatcher.drive(session_id)
        await rig.say(text, n)
    assert rig.model.requests == []
    await rig.clock.advance(2)
    await rig.dispatcher.drive(session_id)
    assert asked(rig) == [["one\n\ntwo\n\nthree"]]


async def test_a_burst_wakes_its_session_by_itself(rig: Rig) -> None:
    busy(rig, Busy.BURST)
    wakes = asyncio.create_task(rig.wakeups.run({Topic.SESSION: rig.dispatcher.drive}))
    await rig.say("one", 1)
    await settle()
    await rig.clock.advance(1.9)
    assert rig.model.requests == []
    await rig.clock.advance(0.2)
    await until(lambda: len(rig.model.requests) == 1)
    await rig.wakeups.idle()
    wakes.cancel()
    await asyncio.gather(wakes, return_exceptions=True)


async def test_somebody_who_never_stops_writing_is_answered_in_between(rig: Rig) -> None:
    busy(rig, Busy.BURST)
    session_id = ""
    for n in range(12):
        session_id = await rig.say(f"m{n}", n)
        await rig.clock.advance(1)
        await rig.dispatcher.drive(session_id)
    assert len(rig.model.requests) == 1


async def test_the_mode_of_a_chat_comes_before_that_of_its_channel() -> None:
    modes = BusyModes(default=Busy.QUEUE, by_channel={"slack": Busy.BURST}, by_chat={("slack", "C1"): Busy.INTERRUPT})
    keys = [SessionKey("slack", "C1", "17.4"), SessionKey("slack", "C2"), SessionKey("telegram", "C1")]
    assert [modes.of(key) for key in keys] == [Busy.INTERRUPT, Busy.BURST, Busy.QUEUE]


seconds = st.integers(0, 1_000).map(lambda number: timedelta(seconds=number))
settles = st.integers(1, 60).map(lambda number: timedelta(seconds=number))


@given(seconds, seconds, settles)
def test_a_burst_is_over_when_it_is_quiet_and_at_the_latest_after_five_settle_times(
    first: timedelta, more: timedelta, settle: timedelta
) -> None:
    backlog = Backlog(count=2, oldest=NOON + first, newest=NOON + first + more)
    at = settles_at(backlog, settle)
    assert at is not None
    assert at - NOON - first == min(more + settle, LONGEST_SETTLE * settle)
    assert settles_at(replace(backlog, stopped=1), settle) is None
    assert settles_at(Backlog(), settle) is None


async def test_too_much_at_once_is_told_to_the_person_and_not_taken(rig: Rig) -> None:
    rig.options = rig.options.model_copy(update={"max_waiting": 3})
    rig.build()
    for n in range(6):
        await rig.intake(message(f"m{n}", n))
    assert await rig.sent() == [ENGLISH.overfull.format(most=3)]
    assert rig.told().count("overfull") == 3
    session_id = (await rig.store.sessions.get(ROUTE.key)).id
    await rig.dispatcher.drive(session_id)
    assert [text for text in await rig.texts(session_id) if text.startswith("m")] == ["m0", "m1", "m2"]
    await rig.intake(message("m0", 0))
    await rig.intake(message("again", 7))
    await rig.dispatcher.drive(session_id)
    assert (await rig.texts(session_id))[-2:] == ["again", "answer to again"]


async def test_a_chat_that_is_full_does_not_fill_another(rig: Rig) -> None:
    rig.options = rig.options.model_copy(update={"max_waiting": 1})
    rig.build()
    for n in range(3):
        await rig.intake(message("x", n, route=Route("slack", f"D{n}")))
    assert await rig.sent() == []


async def test_a_second_thread_is_answered_while_the_first_is_at_work(rig: Rig) -> None:
    """Case E15: two threads of one channel, the first takes its time."""
    rig.model.gate.clear()
    first = await rig.say("slow", 1, route=Route("slack", "C1", "1.1"))
    driving = asyncio.create_task(rig.dispatcher.drive(first))
    await until(lambda: len(rig.model.requests) == 1)
    held, rig.model.gate = rig.model.gate, asyncio.Event()
    rig.model.gate.set()
    await rig.turn("quick", 2, route=Route("slack", "C1", "2.2"))
    assert await rig.sent() == ["answer to quick"]
    held.set()
    await driving
    assert await rig.sent() == ["answer to quick", "answer to slow"]


async def test_a_command_that_joins_is_done_at_the_boundary(rig: Rig) -> None:
    tools = Scripted()
    busy(rig, Busy.STEER, tools)
    session_id, driving = await in_a_tool(rig, tools)
    await rig.say("/compact", 2)
    tools.open("c1")
    await driving
    assert (await rig.sent())[0] == ENGLISH.compacted
    assert (await rig.texts(session_id))[-1].startswith("answer to")
