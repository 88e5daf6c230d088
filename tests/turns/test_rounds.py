"""Rounds: tools side by side, answers made whole, a bound on everything, and what a dead process leaves of them."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.errors import Unavailable
from gateway.domain.keys import Route
from gateway.domain.legality import INTERRUPTED
from gateway.domain.message import Kind, Mark, Message, Role, ToolCall
from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import TurnState
from gateway.ports.model import FinishReason, ToolCallRequested
from gateway.turns.asking import GO_ON
from gateway.turns.calling import FAILED, NO_OBJECT
from gateway.turns.rounds import MOST_CONTINUATIONS
from tests.stores import message
from tests.turns.conftest import Rig, until
from tests.turns.deaths import died_again, left_by_a_death
from tests.turns.scripted import Scripted, calling


@pytest.fixture
def tools(rig: Rig) -> Scripted:
    tools = rig.tools = Scripted()
    rig.build()
    return tools


async def test_calls_run_side_by_side_and_their_results_stand_in_the_order_of_the_calls(
    rig: Rig, tools: Scripted
) -> None:
    rig.model.steps = [calling("wait:a", "wait:b", "look:c"), "done"]
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: {"a", "b"} <= set(tools.gates))
    tools.open("b")
    tools.open("a")
    await driving
    assert [row.tool_call_id for row in await rig.rows(session_id) if row.role is Role.TOOL] == ["a", "b", "c"]


async def test_that_tools_are_asked_for_is_stored_before_they_run(rig: Rig, tools: Scripted) -> None:
    rig.model.steps = [calling("wait:a"), "done"]
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "a" in tools.gates)
    assert [row.role for row in await rig.rows(session_id)] == [Role.USER, Role.ASSISTANT]
    tools.open("a")
    await driving


async def test_a_tool_that_falls_is_a_result_and_no_end_of_the_turn(rig: Rig, tools: Scripted) -> None:
    """Cases K4 and K15: nothing of the fault reaches the model or the person."""
    rig.model.steps = [calling("fall:a", "look:b"), "done"]
    session_id = await rig.turn("go", 1)
    results = [row.text for row in await rig.rows(session_id) if row.role is Role.TOOL]
    assert results == [FAILED, "look b done"]
    assert await rig.sent() == ["done"]


@pytest.mark.parametrize("arguments", ['{"path": "/et', "[]", "null", "5", '"x"'])
async def test_arguments_that_were_cut_off_are_not_run(rig: Rig, tools: Scripted, arguments: str) -> None:
    rig.model.steps = [([ToolCallRequested("a", "write", arguments)], FinishReason.LENGTH), "done"]  # type: ignore[list-item]
    session_id = await rig.turn("go", 1)
    assert tools.written == []
    assert [row.text for row in await rig.rows(session_id) if row.role is Role.TOOL] == [NO_OBJECT]


async def test_a_tool_gets_the_session_it_is_called_for(rig: Rig, tools: Scripted) -> None:
    """Case K15: two sessions run tools at once, and neither sees the other's results."""
    rig.model.steps = [calling("wait:a"), calling("wait:b")]
    ids = [await rig.say(text, n, route=Route("slack", text)) for n, text in enumerate(["one", "two"])]
    driving = [asyncio.create_task(rig.dispatcher.drive(id)) for id in ids]
    await until(lambda: {"a", "b"} <= set(tools.gates))
    tools.open("a")
    tools.open("b")
    await asyncio.gather(*driving)
    for id in ids:
        calls = {call.id for row in await rig.rows(id) for call in row.tool_calls}
        results = {row.tool_call_id for row in await rig.rows(id) if row.role is Role.TOOL}
        assert calls == results
        assert {tools.sessions[call] for call in calls} == {id}


async def test_rounds_are_bounded_and_the_person_is_told(rig: Rig, tools: Scripted) -> None:
    rig.model.steps = [calling(f"look:c{n}") for n in range(100)]
    session_id = await rig.turn("loop", 1)
    # The last answer may still be one; its calls are not run, since nobody would read their results.
    assert len(rig.model.requests) == rig.options.max_rounds + 1
    assert len(tools.started) == rig.options.max_rounds
    turn_id = (await rig.rows(session_id))[0].turn_id
    assert turn_id is not None
    assert await rig.sent() == [ENGLISH.too_many_rounds.format(rounds=rig.options.max_rounds, reference=turn_id[:8])]


async def test_an_answer_that_was_cut_off_is_continued_and_is_one_row(rig: Rig) -> None:
    rig.model.steps = [("Once upon", FinishReason.LENGTH), " a time."]
    session_id = await rig.turn("tell", 1)
    assert await rig.texts(session_id) == ["tell", "Once upon a time."]
    assert await rig.sent() == ["Once upon a time."]
    assert [m.text for m in rig.model.requests[1].messages] == ["tell", "Once upon", GO_ON]


async def test_continuing_is_bounded(rig: Rig) -> None:
    rig.model.steps = [("x", FinishReason.LENGTH)] * 50
    await rig.turn("tell", 1)
    assert len(rig.model.requests) == 1 + MOST_CONTINUATIONS


async def test_where_it_cannot_be_continued_what_there_is_of_an_answer_is_sent(rig: Rig) -> None:
    rig.model.steps = [("Once upon", FinishReason.LENGTH), Unavailable("gone")]
    session_id = await rig.turn("tell", 1)
    assert await rig.texts(session_id) == ["tell", "Once upon"]
    assert await rig.sent() == [f"Once upon\n\n{ENGLISH.cut_off}"]


async def test_what_every_call_of_an_answer_cost_is_counted(rig: Rig) -> None:
    rig.model.steps = ["", ("a", FinishReason.LENGTH), ("b", FinishReason.LENGTH), "c"]
    session_id = await rig.turn("tell", 1)
    rows = await rig.store.turns.counts("fake", "fake:one", 10)
    assert len(rig.model.requests) == 4
    # Those that go on with an answer are not counted beside what they were taken to be.
    assert len(rows) == 2
    assert (await rig.texts(session_id))[-1] == "abc"


async def test_an_empty_answer_is_asked_for_once_more(rig: Rig) -> None:
    rig.model.steps = ["", "there"]
    session_id = await rig.turn("hi", 1)
    assert await rig.texts(session_id) == ["hi", "there"]
    assert rig.model.requests[0].messages == rig.model.requests[1].messages


async def test_silence_posts_nothing_and_is_remembered(rig: Rig) -> None:
    rig.model.steps = [" NO_REPLY\n"]
    session_id = await rig.turn("fyi", 1)
    assert await rig.sent() == []
    assert len(await rig.rows(session_id)) == 2
    assert rig.events[-1].kind == "finished"
    assert rig.events[-1].details["is_silent"]
    await rig.turn("hi", 2)
    assert [m.role for m in rig.model.requests[-1].messages] == [Role.USER, Role.ASSISTANT, Role.USER]


@pytest.mark.parametrize("text", ["NO_REPLY, he said", "I answer with NO_REPLY", "no_reply"])
async def test_a_marker_inside_an_answer_is_no_silence(rig: Rig, text: str) -> None:
    rig.model.steps = [text]
    await rig.turn("fyi", 1)
    assert await rig.sent() == [text]


async def test_a_turn_that_takes_too_long_is_given_up_and_the_next_one_runs(rig: Rig, tools: Scripted) -> None:
    rig.model.steps = [calling("look:a"), calling("wait:b")]
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "b" in tools.gates)
    await rig.clock.advance(rig.options.turn_minutes * 60 - 1)
    assert not driving.done()
    await rig.clock.advance(1)
    await driving
    (turn,) = await rig.store.turns.list()
    assert turn.state is TurnState.FAILED
    assert await rig.sent() == [ENGLISH.too_long.format(reference=turn.id[:8])]
    assert [(row.tool_call_id, row.kind) for row in await rig.rows(session_id) if row.role is Role.TOOL] == [
        ("a", Kind.CHAT), ("b", Kind.INTERRUPTED),
    ]  # fmt: skip
    await rig.turn("still there?", 2)
    assert (await rig.sent())[-1] == "answer to still there?"


async def test_a_model_that_never_answers_is_given_up_too(rig: Rig) -> None:
    rig.model.gate.clear()
    session_id = await rig.say("go", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.clock.advance(rig.options.turn_minutes * 60)
    await driving
    assert (await rig.store.turns.list())[0].state is TurnState.FAILED
    assert rig.clock.sleepers == 0
    assert session_id


def asked_for(*ids: str, name: str = "write") -> Message:
    return Message(role=Role.ASSISTANT, tool_calls=tuple(ToolCall(id=id, name=name, arguments="{}") for id in ids))


async def test_a_tool_that_may_have_run_is_not_run_again_unasked(rig: Rig, tools: Scripted) -> None:
    rig.model.steps = ["I was cut off"]
    done = Message(role=Role.TOOL, tool_call_id="a", content="ok")
    session_id = await left_by_a_death(rig, "go", 1, asked_for("a", "b"), done)
    await rig.dispatcher.drive(session_id)
    assert tools.started == []
    assert [m.text for m in rig.model.requests[0].messages if m.role is Role.TOOL] == ["ok", INTERRUPTED]
    assert await rig.sent() == ["I was cut off"]
    kinds = [row.kind for row in await rig.rows(session_id) if row.role is Role.TOOL]
    assert kinds == [Kind.CHAT, Kind.INTERRUPTED]


async def test_calls_of_one_id_in_two_rounds_are_told_apart(rig: Rig, tools: Scripted) -> None:
    """Local servers call every call `call_0`; that an earlier one has its result says nothing of the newest."""
    done = Message(role=Role.TOOL, tool_call_id="call_0", content="ok")
    session_id = await left_by_a_death(rig, "go", 1, asked_for("call_0"), done, asked_for("call_0"))
    await rig.dispatcher.drive(session_id)
    assert [m.text for m in rig.model.requests[0].messages if m.role is Role.TOOL] == ["ok", INTERRUPTED]


async def test_a_long_turn_is_mended_at_its_end(rig: Rig, tools: Scripted) -> None:
    """A turn of more rows than one page holds."""
    rounds = []
    for n in range(60):
        ids = [f"c{n}-{m}" for m in range(20)]
        rounds += [asked_for(*ids), *(Message(role=Role.TOOL, tool_call_id=id, content="ok") for id in ids)]
    rig.model.window = 1_000_000
    session_id = await left_by_a_death(rig, "go", 1, *rounds, asked_for("last"))
    await rig.dispatcher.drive(session_id)
    assert [row.tool_call_id for row in await rig.rows(session_id) if row.kind is Kind.INTERRUPTED] == ["last"]


async def test_what_is_set_aside_is_not_replayed_any_more(rig: Rig) -> None:
    """A message that kills the process with every replay would otherwise kill it for ever."""
    session_id = await left_by_a_death(rig, "go", 1, asked_for("a"))
    for _ in range(2):
        await died_again(rig, session_id)
    await rig.dispatcher.drive(session_id)
    (turn,) = await rig.store.turns.list(state=TurnState.SET_ASIDE)
    assert await rig.sent() == [ENGLISH.set_aside.format(reference=turn.id[:8])]
    assert {frozenset(row.marks) for row in await rig.rows(session_id)} == {frozenset({Mark.SET_ASIDE})}
    await rig.turn("and now?", 2)
    assert [m.text for m in rig.model.requests[-1].messages] == ["and now?"]


async def test_every_step_is_told_with_the_place_it_happened_in(rig: Rig, tools: Scripted) -> None:
    """Case P3: session key, channel, chat, message, turn and origin label stand with each event."""
    rig.model.steps = [calling("wait:a"), "done"]
    session_id = await rig.say("go", 1)
    await rig.intake(message("go", 1))
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: "a" in tools.gates)
    await rig.say("more", 2)
    tools.open("a")
    await driving
    assert rig.told() == ["accepted", "duplicate", "started", "accepted", "round", "joined", "finished"]
    for event in rig.events:
        assert (event.session_key, event.channel, event.chat_id) == ("slack:D1", "slack", "D1")
        assert event.message_id or event.turn_id
    (turn,) = await rig.store.turns.list()
    assert {event.turn_id for event in rig.events if event.kind in ("started", "round", "joined", "finished")} == {
        turn.id
    }
