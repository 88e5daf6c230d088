"""Turns from the inbox to the outbox: answered once, resumed after a death, honest when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from gateway.domain.errors import AuthFailed, ContextOverflow, Filtered, Unavailable
from gateway.domain.keys import Route
from gateway.domain.message import Role, ToolCall
from gateway.domain.phrases import ENGLISH
from gateway.domain.session import Session
from gateway.ports.leases import session_lease
from gateway.ports.model import FinishReason, ToolCallRequested
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec
from tests.turns.conftest import Rig, until


async def test_a_message_is_answered_and_the_answer_is_on_its_way(rig: Rig) -> None:
    session_id = await rig.turn("hi", 1)
    user, assistant = await rig.rows(session_id)
    assert (user.role, user.text, user.sender and user.sender.id) == (Role.USER, "hi", "U1")
    assert (assistant.text, assistant.provider, assistant.model) == ("answer to hi", "fake", "fake:one")
    assert user.turn_id == assistant.turn_id
    assert await rig.sent() == ["answer to hi"]
    assert await rig.store.leases.holders() == []


async def test_the_next_turn_is_sent_what_was_said_before(rig: Rig) -> None:
    await rig.turn("one", 1)
    await rig.turn("two", 2)
    request = rig.model.requests[-1]
    assert [message.text for message in request.messages] == ["one", "answer to one", "two"]
    assert request.system == "Be brief."


async def test_messages_that_came_together_are_one_turn_in_order(rig: Rig) -> None:
    session_id = await rig.say("one", 1)
    await rig.say("two", 2)
    await rig.dispatcher.drive(session_id)
    assert len(rig.model.requests) == 1
    assert await rig.texts(session_id) == ["one", "two", "answer to one\n\ntwo"]


async def test_a_message_that_comes_during_a_turn_is_the_next_turn(rig: Rig) -> None:
    rig.model.gate.clear()
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    rig.model.gate.set()
    await driving
    assert await rig.texts(session_id) == ["one", "answer to one", "two", "answer to two"]


async def test_one_stuck_session_does_not_hold_another(rig: Rig) -> None:
    rig.model.gate.clear()
    stuck = asyncio.create_task(rig.dispatcher.drive(await rig.say("one", 1)))
    await until(lambda: len(rig.model.requests) == 1)
    rig.model.gate = asyncio.Event()
    rig.model.gate.set()
    await rig.turn("two", 2, route=Route("slack", "D2"))
    assert await rig.sent() == ["answer to two"]
    stuck.cancel()
    await asyncio.gather(stuck, return_exceptions=True)


async def test_no_more_sessions_run_at_once_than_allowed(rig: Rig) -> None:
    rig.model.gate.clear()
    dispatcher = rig.new_dispatcher("narrow", max_concurrent=2)
    ids = [await rig.say("x", n, route=Route("slack", f"D{n}")) for n in range(5)]
    tasks = [asyncio.create_task(dispatcher.drive(id)) for id in ids]
    await until(lambda: len(rig.model.requests) == 2)
    assert len(await rig.store.leases.holders("session:")) == 2
    rig.model.gate.set()
    await asyncio.gather(*tasks)
    assert len(rig.model.requests) == 5


@pytest.mark.parametrize(
    ("error", "phrase"),
    [
        (Unavailable("down"), ENGLISH.unavailable),
        (AuthFailed("no key"), ENGLISH.unavailable),
        (Filtered("no"), ENGLISH.filtered),
        (ContextOverflow("big"), ENGLISH.failed),
        (ZeroDivisionError("/etc/passwd sk-test"), ENGLISH.failed),
    ],
)
async def test_a_failed_turn_says_so_once_and_shows_nothing_internal(rig: Rig, error: Exception, phrase: str) -> None:
    rig.model.steps = [error, error]
    session_id = await rig.turn("hi", 1)
    (note,) = await rig.sent()
    turn_id = (await rig.rows(session_id))[0].turn_id
    assert turn_id is not None
    assert note == phrase.format(reference=turn_id[:8])
    assert await rig.texts(session_id) == ["hi"]


async def test_an_answer_that_a_filter_ended_is_no_answer(rig: Rig) -> None:
    """Case A11: what a filter left of an answer is not stored as the bot's words."""
    rig.model.steps = [["I will tell you how to", Filtered("refused")]]
    session_id = await rig.turn("hi", 1)
    assert await rig.texts(session_id) == ["hi"]
    assert "content filter" in (await rig.sent())[0]


async def test_an_answer_that_was_cut_off_says_so_to_the_person_only(rig: Rig) -> None:
    rig.model.steps = [(piece, FinishReason.LENGTH) for piece in ("once", " upon", " a", " time")]
    session_id = await rig.turn("tell me a story", 1)
    assert await rig.texts(session_id) == ["tell me a story", "once upon a time"]
    assert await rig.sent() == [f"once upon a time\n\n{ENGLISH.cut_off}"]


async def test_a_history_the_model_finds_too_large_is_halved_once(rig: Rig) -> None:
    options = rig.options.model_copy(update={"compaction": False})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    for n in range(30):
        await rig.turn(f"question {n} " + "word " * 10, n)
    rig.model.steps = [ContextOverflow("too large")]
    await rig.turn("still there?", 99)
    first, second = rig.model.requests[-2:]
    assert len(second.messages) < len(first.messages)
    assert second.messages[-1].text == first.messages[-1].text == "still there?"
    assert (await rig.sent())[-1] == "answer to still there?"


async def test_an_answer_is_kept_until_the_store_can_be_used_again(rig: Rig) -> None:
    """A disk that is full for a while costs time, and neither the answer nor a second call of the model."""
    finish, failures = rig.store.turns.finish, [Unavailable("disk full")] * 5

    async def flaky(*args: object, **more: object) -> None:
        if failures:
            raise failures.pop()
        await finish(*args, **more)  # type: ignore[arg-type]

    rig.store.turns.finish = flaky  # type: ignore[method-assign]
    session_id = await rig.say("hi", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    for _ in range(6):
        await until(lambda: driving.done() or rig.clock.sleepers > 1)
        await rig.clock.advance(20)
    await driving
    assert await rig.texts(session_id) == ["hi", "answer to hi"]
    assert len(rig.model.requests) == 1


async def test_a_stop_while_a_turn_is_being_begun_does_not_count_as_a_crash(rig: Rig) -> None:
    session_id = await rig.say("hi", 1)
    begin = rig.store.turns.begin
    for _ in range(4):
        begun = asyncio.Event()

        async def slow(*args: object, begun: asyncio.Event = begun, **more: object) -> object:
            turn = await begin(*args, **more)  # type: ignore[arg-type]
            begun.set()
            await asyncio.sleep(0)
            return turn

        rig.store.turns.begin = slow  # type: ignore[method-assign, assignment]
        driving = asyncio.create_task(rig.dispatcher.drive(session_id))
        await begun.wait()
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
    rig.store.turns.begin = begin  # type: ignore[method-assign]
    await rig.dispatcher.drive(session_id)
    assert await rig.texts(session_id) == ["hi", "answer to hi"]
    assert len(rig.model.requests) == 1


async def test_a_null_answer_and_an_error_never_become_the_bots_words(rig: Rig) -> None:
    """Case A11: a provider answers null, then fails, then answers; no later request holds anything but real words."""
    blank = " \u200b\ufeff "
    rig.model.steps = ["", blank, blank, "", Unavailable("502 Bad Gateway"), "well again"]
    for n in range(4):
        session_id = await rig.turn(f"q{n}", n)
    assert [m.text for m in rig.model.requests[-1].messages] == ["q0\n\nq1\n\nq2\n\nq3"]
    assert await rig.texts(session_id) == ["q0", "q1", "q2", "q3", "well again"]
    assert len(await rig.sent()) == 4


async def test_a_turn_whose_process_died_is_answered_by_the_next_process(rig: Rig) -> None:
    rig.model.gate.clear()
    session_id = await rig.say("hi", 1)
    died = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.clock.advance(0)
    # Its renewals stop, as those of a dead process do, and its lease runs out.
    (lease,) = await rig.store.leases.holders(session_lease(session_id))
    await rig.store.leases.release(lease)
    rig.model.gate = asyncio.Event()
    rig.model.gate.set()
    await rig.new_dispatcher("two").drive(session_id)
    assert await rig.texts(session_id) == ["hi", "answer to hi"]
    died.cancel()
    await asyncio.gather(died, return_exceptions=True)


async def test_a_runner_that_lost_its_lease_writes_nothing(rig: Rig) -> None:
    """Two runners on one store: the first sleeps through its lease, the second answers, the first wakes up."""
    rig.model.gate.clear()
    first_gate = rig.model.gate
    session_id = await rig.say("hi", 1)
    first = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    (lease,) = await rig.store.leases.holders(session_lease(session_id))
    await rig.store.leases.release(lease)
    rig.model.gate = asyncio.Event()
    rig.model.gate.set()
    await rig.new_dispatcher("two").drive(session_id)
    first_gate.set()
    await first
    assert await rig.texts(session_id) == ["hi", "answer to hi"]
    assert await rig.sent() == ["answer to hi"]


async def test_a_turn_that_ended_the_process_twice_is_set_aside_with_one_note(rig: Rig) -> None:
    session_id = await rig.say("poison", 1)
    for _ in range(2):
        await _die_in_a_turn(rig, session_id)
    await rig.dispatcher.drive(session_id)
    assert rig.model.requests == []
    (note,) = await rig.sent()
    assert note.startswith(ENGLISH.set_aside.split("(")[0])
    await rig.turn("and now?", 2)
    assert (await rig.texts(session_id))[-1].startswith("answer to")


async def test_turns_that_only_happened_to_run_are_not_set_aside_with_the_one_that_kills(rig: Rig) -> None:
    """Three turns run when the process dies; of those, one ends the next process too. Only that one is set aside."""
    ids = [await rig.say(text, n, route=Route("slack", f"D{n}")) for n, text in enumerate(["poison", "one", "two"])]
    for id in ids:
        await _die_in_a_turn(rig, id)
    rig.model.gate.clear()
    second = rig.new_dispatcher("second")
    tasks = [asyncio.create_task(second.drive(id)) for id in ids]
    await until(lambda: len(rig.model.requests) == 1)
    for _ in range(50):
        await rig.store.leases.holders()
    assert [request.messages[-1].text for request in rig.model.requests] == ["poison"]
    await _kill(rig, tasks)
    rig.model.gate = asyncio.Event()
    rig.model.gate.set()
    await asyncio.gather(*(rig.new_dispatcher("third").drive(id) for id in ids))
    sent = await rig.sent()
    assert len([text for text in sent if "put it aside" in text]) == 1
    assert {"answer to one", "answer to two"} <= set(sent)


async def _die_in_a_turn(rig: Rig, session_id: str) -> None:
    """Leave a turn as a process does that is killed in it."""
    lease = await rig.store.leases.acquire(session_lease(session_id), "dies", timedelta(seconds=30))
    assert lease is not None
    await rig.store.turns.begin(session_id, lease)
    await rig.store.leases.release(lease)


async def _kill(rig: Rig, tasks: list[asyncio.Task[None]]) -> None:
    """End tasks as a kill does: what they would still write is refused, since their leases are gone."""
    for lease in await rig.store.leases.holders():
        await rig.store.leases.release(lease)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_stop_in_good_order_sets_the_turn_down_and_does_not_count(rig: Rig) -> None:
    for _ in range(4):
        rig.model.gate.clear()
        session_id = await rig.say("hi", 1)
        driving = asyncio.create_task(rig.dispatcher.drive(session_id))
        await until(lambda: rig.model.gate._waiters != [] and len(rig.model.gate._waiters) == 1)
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        assert await rig.store.leases.holders() == []
    rig.model.gate.set()
    await rig.dispatcher.drive(session_id)
    assert await rig.texts(session_id) == ["hi", "answer to hi"]


async def test_a_draining_dispatcher_begins_nothing(rig: Rig) -> None:
    rig.dispatcher.drain()
    session_id = await rig.turn("hi", 1)
    assert rig.model.requests == []
    assert await rig.store.turns.due(["slack"], 5) == [session_id]


class Adder(Tools):
    """One tool that adds; the rest is unknown to it."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        return [ToolSpec(name="add", description="Adds.", schema={"type": "object"}, side_effects=False)]

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.calls.append(call)
        return ToolResult(text=f"{call.arguments} is 5")


async def test_rounds_of_tools_are_stored_as_they_finish(rig: Rig) -> None:
    tools = Adder()
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, tools=tools)
    calls = [ToolCallRequested(id, "add", "{}") for id in ("c1", "c2")]
    rig.model.steps = [calls, "it is five"]
    session_id = await rig.turn("add", 1)
    rows = await rig.rows(session_id)
    assert [row.role.value for row in rows] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [row.tool_call_id for row in rows[2:4]] == ["c1", "c2"]
    assert [call.id for call in tools.calls] == ["c1", "c2"]
    assert rig.model.requests[0].tools[0].name == "add"
    assert await rig.sent() == ["it is five"]


async def test_a_model_that_never_stops_calling_tools_is_stopped(rig: Rig) -> None:
    rig.model.steps = [[ToolCallRequested(f"c{n}", "add", "{}")] for n in range(100)]
    await rig.turn("loop", 1)
    assert len(rig.model.requests) == rig.options.max_rounds + 1
    assert len(await rig.sent()) == 1


async def test_a_long_history_is_cut_to_the_models_window(rig: Rig) -> None:
    options = rig.options.model_copy(update={"compaction": False})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    rig.model.window = 300
    for n in range(40):
        await rig.turn(f"question {n} " + "word " * 20, n)
    request = rig.model.requests[-1]
    assert sum(message.tokens or 0 for message in request.messages) <= 200
    assert request.messages[-1].text.startswith("question 39")


async def test_a_system_prompt_larger_than_the_window_is_told_to_the_owner_not_the_chat(rig: Rig) -> None:
    rig.model.window = 101
    await rig.turn("hi", 1)
    assert rig.model.requests == []
    assert "system prompt" not in (await rig.sent())[0]
