"""Where no summary can be had an owner is asked, while the turn waits and holds nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.phrases import ENGLISH
from gateway.domain.turn import Waiting
from gateway.ports.leases import session_lease
from tests.turns.conftest import Rig
from tests.turns.summing import Summing, model, state_of, talk

ASKED = "What shall I do?"


async def asked(rig: Rig) -> str:
    """Bring an owner's chat to where the summariser fails and the question is put; return the id of its session."""
    rig.owners = frozenset({"U1"})
    model(rig).fails = lambda: True
    for n in range(100):
        session_id = await rig.turn(f"q{n} " + "word " * 20, n)
        if ASKED in (await rig.sent())[-1]:
            return session_id
    raise AssertionError("nobody was asked")


async def test_an_owner_in_a_chat_of_their_own_is_asked_and_the_turn_holds_no_lease_meanwhile(rig: Rig) -> None:
    session_id = await asked(rig)
    assert await rig.store.leases.holders() == []
    assert await rig.store.turns.due(["slack"], 5) == []
    await rig.dispatcher.drive(session_id)
    assert ASKED in (await rig.sent())[-1]


async def test_the_answer_to_try_again_is_followed_and_not_shown_to_the_model(rig: Rig) -> None:
    session_id = await asked(rig)
    model(rig).fails = lambda: False
    await rig.turn("1", 1_000)
    assert not (await state_of(rig, session_id)).trimmed
    assert (await rig.sent())[-1].startswith("answer to q")
    assert "1" not in [one.text for one in model(rig).requests[-1].messages]


async def test_trying_again_in_vain_asks_again_each_time(rig: Rig) -> None:
    await asked(rig)
    for times, answer in ((2, "Try again."), (3, "1")):
        await rig.turn(answer, 1_000 + times)
        assert len([text for text in await rig.sent() if ASKED in text]) == times


async def test_in_another_language_the_labels_are_typed_as_people_type(rig: Rig) -> None:
    rig.phrases = replace(ENGLISH, ask_compaction=f"{ASKED} {{minutes}}", try_again="Versuch  es noch einmal.")
    rig.build()
    session_id = await asked(rig)
    model(rig).fails = lambda: False
    await rig.turn("versuch es noch einmal", 1_000)
    assert not (await state_of(rig, session_id)).trimmed


async def test_what_was_on_its_way_when_the_question_was_put_is_no_answer_to_it(rig: Rig) -> None:
    rig.owners = frozenset({"U1"})
    model(rig).fails = lambda: True
    original = rig.store.turns.suspend

    async def suspend(*args: object, **more: object) -> None:
        await rig.say("2", 5_000)
        await original(*args, **more)  # type: ignore[arg-type]

    rig.store.turns.suspend = suspend  # type: ignore[method-assign]
    for n in range(100, 160):
        await rig.turn(f"q{n} " + "word " * 20, n)
        if any(ASKED in text for text in await rig.sent()):
            break
    assert ASKED in (await rig.sent())[-1]
    assert await rig.store.turns.due(["slack"], 5) == []


async def test_compact_by_hand_that_had_to_ask_ends_without_asking_the_model_anything(rig: Rig) -> None:
    rig.owners = frozenset({"U1"})
    await talk(rig, 8)
    model(rig).fails = lambda: True
    await rig.turn("/compact", 999)
    assert ASKED in (await rig.sent())[-1]
    requests, summaries = len(model(rig).requests), len(model(rig).asked_for_summaries)
    await rig.turn("2", 1_000)
    assert len(model(rig).requests) == requests
    assert len(model(rig).asked_for_summaries) == summaries
    assert (await rig.sent())[-1].startswith("(This conversation has become very long")


async def test_a_turn_that_had_waited_for_something_else_is_not_trimmed(rig: Rig) -> None:
    session_id = await rig.say("hi", 1)
    lease = await rig.store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
    assert lease is not None
    turn = await rig.store.turns.begin(session_id, lease)
    assert turn is not None
    await rig.store.turns.suspend(turn, lease, Waiting(reason="child", or_message=True))
    await rig.store.leases.release(lease)
    await rig.turn("still there?", 2)
    assert [text for text in await rig.sent() if text.startswith("(This conversation")] == []


@pytest.mark.parametrize("answer", ["2", "trim", "what do you mean?"])
async def test_any_other_answer_leaves_the_oldest_out_and_goes_on(rig: Rig, answer: str) -> None:
    session_id = await asked(rig)
    await rig.turn(answer, 1_000)
    assert (await state_of(rig, session_id)).trimmed
    answered = (await rig.sent())[-1]
    assert answered.startswith("answer to")
    assert ("what do you mean?" in answered) is (answer == "what do you mean?")


async def test_when_nobody_answers_the_turn_goes_on_by_itself_after_the_time_limit(rig: Rig) -> None:
    session_id = await asked(rig)
    await rig.clock.advance(9 * 60)
    assert await rig.store.turns.due(["slack"], 5) == []
    await rig.clock.advance(61)
    assert await rig.store.turns.due(["slack"], 5) == [session_id]
    await rig.dispatcher.drive(session_id)
    assert (await state_of(rig, session_id)).trimmed
    assert (await rig.sent())[-1].startswith("answer to q")


async def test_nobody_but_an_owner_is_asked_and_nobody_where_it_is_switched_off(rig: Rig) -> None:
    for owners, failure in ((frozenset({"U9"}), "ask"), (frozenset({"U1"}), "trim")):
        options = rig.options.model_copy(update={"compaction_failure": failure})
        other = Rig(rig.store, rig.clock, Summing(window=1_100), rig.policy, rig.media, options=options, owners=owners)
        model(other).fails = lambda: True
        await talk(other, 24, first=1_000 if failure == "ask" else 2_000)
        assert not [text for text in await rig.sent() if ASKED in text]


async def test_a_turn_that_waits_is_gone_on_with_by_the_next_process(rig: Rig) -> None:
    session_id = await asked(rig)
    await rig.say("2", 1_000)
    await rig.new_dispatcher("two").drive(session_id)
    assert (await rig.sent())[-1].startswith("answer to q")
    turns = [turn for turn in await rig.store.turns.due(["slack"], 5)]
    assert turns == []


async def test_an_owner_who_did_not_answer_is_not_asked_again_until_a_summary_succeeds(rig: Rig) -> None:
    session_id = await asked(rig)
    await rig.clock.advance(11 * 60)
    await rig.dispatcher.drive(session_id)
    await talk(rig, 40, first=2_000)
    assert len([text for text in await rig.sent() if ASKED in text]) == 1
