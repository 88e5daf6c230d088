"""The one gate: what is admitted is stored once, and a stranger costs nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.errors import InvalidKey, NotFound, Refused, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.origins import Origin
from gateway.domain.policy import Rules
from gateway.ports.sessions import NewSession
from tests.stores import ROUTE, message
from tests.turns.conftest import Rig

CLOSED = Rules()
CHANNEL = Route("slack", "C1", "t1")


async def test_an_admitted_message_is_stored_before_the_platform_is_told(rig: Rig) -> None:
    session_id = await rig.say("hi", 1)
    assert await rig.store.turns.due(["slack"], 5) == [session_id]
    assert rig.model.requests == []


async def test_a_session_knows_where_it_came_from(rig: Rig) -> None:
    origin = Origin(kind="slack", label="#general · T0ABCD", tenant="T0ABCD")
    await rig.intake(replace(message("hi", 1), origin=origin))
    assert (await rig.store.sessions.get(ROUTE.key)).origin == origin


async def test_a_repeat_gives_one_turn_at_once_and_long_after(rig: Rig) -> None:
    session_id = await rig.turn("hi", 1)
    for minutes in (0, 6, 55):
        await rig.clock.advance(minutes * 60)
        await rig.turn("hi", 1)
    assert len(rig.model.requests) == 1
    assert await rig.texts(session_id) == ["hi", "answer to hi"]


async def test_a_stranger_gets_one_line_a_day_and_no_session_or_model_call(rig: Rig) -> None:
    rig.policy.current = CLOSED
    for n in range(5):
        await rig.intake(message("let me in", n))
    assert await rig.sent() == ["I do not know you yet. To let you in, my owner needs this id: U1"]
    await rig.clock.advance(24 * 3600)
    await rig.intake(message("let me in", 9))
    assert len(await rig.sent()) == 2
    with pytest.raises(NotFound):
        await rig.store.sessions.get(ROUTE.key)
    assert rig.model.requests == []


async def test_two_strangers_get_a_line_each(rig: Rig) -> None:
    rig.policy.current = CLOSED
    await rig.intake(message("hi", 1))
    await rig.intake(message("hi", 2, sender=Sender(id="U2"), route=Route("slack", "D2")))
    assert len(await rig.sent()) == 2


async def test_in_a_shared_chat_only_the_stranger_sees_the_line(rig: Rig) -> None:
    rig.policy.current = Rules(people=frozenset({"U1"}))
    await rig.intake(replace(message("hi", 1, route=CHANNEL), is_direct=False))
    (note,) = await rig.store.outbox.list()
    assert note.outbound is not None
    assert (note.outbound.only_for, note.route) == ("U1", CHANNEL)
    assert "C1" in note.outbound.text


async def test_where_a_line_cannot_be_private_a_shared_chat_gets_none(rig: Rig) -> None:
    rig.policy.current = CLOSED
    await rig.intake(replace(message("hi", 1, route=Route("telegram", "-100")), is_direct=False))
    assert await rig.sent() == []


async def test_talk_that_is_not_for_the_bot_leaves_no_trace(rig: Rig) -> None:
    await rig.intake(replace(message("lunch?", 1, route=CHANNEL), is_direct=False, addresses_bot=False))
    with pytest.raises(NotFound):
        await rig.store.sessions.get(CHANNEL.key)


async def test_another_bot_is_not_answered(rig: Rig) -> None:
    await rig.intake(message("beep", 1, sender=Sender(id="B1", is_bot=True)))
    with pytest.raises(NotFound):
        await rig.store.sessions.get(ROUTE.key)


@pytest.mark.parametrize("fault", [ZeroDivisionError(), Refused("no such thing"), InvalidKey("no key")])
async def test_an_event_we_stumble_over_is_refused_for_good_and_its_sender_told(rig: Rig, fault: Exception) -> None:
    """Case E14: an event that can never be stored must not hold up all that come after it."""
    accept = rig.store.turns.accept

    async def stumbles(inbound: Inbound, new: NewSession, **_: object) -> str | None:
        if inbound.text == "poison":
            raise fault
        return await accept(inbound, new)

    rig.store.turns.accept = stumbles  # type: ignore[method-assign]
    for n, text in enumerate(["poison", "poison", "fine"]):
        await rig.intake(message(text, min(n, 1)))
    assert len(await rig.sent()) == 2
    await rig.turn("next", 9)
    assert (await rig.sent())[-1].endswith("next")


async def test_an_event_that_cannot_be_stored_at_the_moment_must_come_again(rig: Rig) -> None:
    async def full(inbound: Inbound, new: NewSession, **_: object) -> str | None:
        raise Unavailable("disk full")

    rig.store.turns.accept = full  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await rig.intake(message("hi", 1))
