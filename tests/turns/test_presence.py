"""The sign that the bot is at work: soon, seldom, and gone in every ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.errors import AuthFailed, NotDone, Unknown
from gateway.domain.keys import Route
from gateway.domain.policy import Rules
from gateway.ports.channel import Capabilities, Presence
from gateway.turns.presence import PAUSE, RETRY_SECONDS, Attention
from tests.clock import ManualClock, settle
from tests.fakes import FakeChannel
from tests.stores import ROUTE, message
from tests.turns.conftest import Rig, until

WORKING, IDLE = Presence.WORKING, Presence.IDLE
LASTS = 5


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel("slack", Capabilities(presence_seconds=LASTS))


@pytest.fixture
async def attention(channel: FakeChannel, clock: ManualClock) -> AsyncIterator[Attention]:
    attention = Attention({"slack": channel}, clock)
    yield attention
    await closed(attention, clock)
    assert attention.shown == 0


async def closed(attention: Attention, clock: ManualClock) -> None:
    """Close it while time goes on."""
    closing = asyncio.create_task(attention.close())
    await clock.advance(60)
    await closing


def states(channel: FakeChannel) -> list[Presence]:
    return [state for _, state in channel.signs]


async def test_it_is_shown_at_once_renewed_before_it_fades_and_cleared_last(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    """Case F2: nobody waits two seconds in silence. Case I5: the last call is a clear, and nothing follows it."""
    attention.working("s1", ROUTE)
    await settle()
    assert states(channel) == [WORKING]
    await clock.advance(LASTS * 0.8)
    assert states(channel) == [WORKING, WORKING]
    attention.idle("s1")
    await clock.advance(60)
    assert states(channel) == [WORKING, WORKING, IDLE]


async def test_more_messages_of_a_chat_make_no_more_calls(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    for _ in range(50):
        attention.working("s1", ROUTE)
        await settle()
    assert states(channel) == [WORKING]


async def test_a_call_on_its_way_is_followed_by_the_clear_and_by_nothing(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    """A slow "typing" must not land behind the clear, so the clear waits for it."""
    channel.slow_presence = asyncio.Event()
    attention.working("s1", ROUTE)
    await settle()
    attention.idle("s1")
    await settle()
    assert channel.signs == []
    channel.slow_presence.set()
    await clock.advance(60)
    assert states(channel) == [WORKING, IDLE]


async def test_work_that_begins_while_the_sign_is_being_cleared_is_shown_again(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    attention.working("s1", ROUTE)
    await settle()
    channel.slow_presence = asyncio.Event()
    attention.idle("s1")
    await clock.advance(0.2)
    attention.working("s1", ROUTE)
    channel.slow_presence.set()
    await clock.advance(1)
    assert states(channel) == [WORKING, IDLE, WORKING]


async def test_calls_of_one_channel_are_spaced_and_what_would_come_late_is_left_out(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    for n in range(100):
        attention.working(f"s{n}", Route("slack", f"D{n}"))
    await settle()
    assert len(channel.signs) == 1
    await clock.advance(2)
    assert len(channel.signs) == 21
    for n in range(100):
        attention.idle(f"s{n}")
    await clock.advance(10)
    for n in range(100):
        own = [state for chat, state in channel.signs if chat == f"D{n}"]
        assert own in ([], [WORKING, IDLE])


async def test_a_limit_of_the_platform_is_a_deadline_for_all_signs_of_the_channel(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.presence_errors = [NotDone("too many requests", retry_after=33)]
    attention.working("s1", ROUTE)
    await settle()
    attention.working("s2", Route("slack", "D2"))
    await clock.advance(30)
    assert len(channel.signs) == 1
    await clock.advance(10)
    assert len(channel.signs) > 1


async def test_a_channel_that_may_show_nothing_is_left_alone_for_a_while(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.presence_errors = [AuthFailed("missing_scope")]
    attention.working("s1", ROUTE)
    await clock.advance(PAUSE.total_seconds() - 10)
    assert len(channel.signs) == 1


@pytest.mark.parametrize("error", [Unknown("lost"), NotDone("no"), ZeroDivisionError("/secret")])
async def test_a_sign_that_fails_is_no_failure_and_is_tried_again(
    attention: Attention, channel: FakeChannel, clock: ManualClock, error: Exception
) -> None:
    channel.presence_errors = [error]
    attention.working("s1", ROUTE)
    await clock.advance(LASTS)
    assert states(channel) == [WORKING, WORKING]


async def test_a_channel_without_a_sign_costs_nothing(clock: ManualClock) -> None:
    channel = FakeChannel("slack")
    attention = Attention({"slack": channel}, clock)
    attention.working("s1", ROUTE)
    attention.working("s2", Route("gone", "1"))
    attention.idle("s1")
    await attention.close()
    assert channel.signs == []
    assert attention.shown == 0


async def test_everything_shown_is_cleared_at_the_end(channel: FakeChannel, clock: ManualClock) -> None:
    attention = Attention({"slack": channel}, clock)
    attention.working("s1", ROUTE)
    await settle()
    await closed(attention, clock)
    assert states(channel) == [WORKING, IDLE]


@pytest.fixture
def shown(rig: Rig, channel: FakeChannel) -> FakeChannel:
    rig.channels["slack"] = channel
    rig.build()
    return channel


@pytest.mark.parametrize("ending", ["reply", "silence", "error", "stop", "set down"])
async def test_every_ending_of_a_turn_clears_the_sign(rig: Rig, shown: FakeChannel, ending: str) -> None:
    """Case I5."""
    if ending == "silence":
        rig.model.steps = ["NO_REPLY"]
    elif ending == "error":
        rig.model.steps = [ZeroDivisionError()]
    rig.model.gate.clear()
    session_id = await rig.say("hi", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await settle()
    assert states(shown) == [WORKING]
    if ending == "stop":
        await rig.intake(message("/stop", 2))
    elif ending == "set down":
        driving.cancel()
    rig.model.gate.set()
    await asyncio.gather(driving, return_exceptions=True)
    await rig.clock.advance(60)
    assert states(shown) == [WORKING, IDLE]
    await closed(rig.turning.attention, rig.clock)


async def test_a_message_that_has_to_wait_is_acknowledged_before_its_turn(rig: Rig, shown: FakeChannel) -> None:
    """Case F2: all places are taken, and still it is seen at once that the message was heard."""
    await rig.say("hi", 1)
    await settle()
    assert states(shown) == [WORKING]
    assert rig.model.requests == []


async def test_whom_the_policy_does_not_admit_sees_no_sign(rig: Rig, shown: FakeChannel) -> None:
    rig.policy.current = Rules()
    await rig.intake(message("hi", 1))
    await settle()
    assert shown.signs == []


async def test_a_sign_stays_while_turns_follow_each_other(rig: Rig, shown: FakeChannel) -> None:
    rig.model.gate.clear()
    session_id = await rig.say("one", 1)
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    first, rig.model.gate = rig.model.gate, asyncio.Event()
    first.set()
    await until(lambda: len(rig.model.requests) == 2)
    await rig.clock.advance(1)
    assert states(shown) == [WORKING]
    rig.model.gate.set()
    await driving
    await rig.clock.advance(1)
    assert states(shown) == [WORKING, IDLE]


async def test_a_sign_stays_while_a_burst_settles(rig: Rig, shown: FakeChannel) -> None:
    rig.modes = BusyModes(default=Busy.BURST)
    rig.build()
    session_id = await rig.say("one", 1)
    await rig.clock.advance(2)
    rig.model.gate.clear()
    driving = asyncio.create_task(rig.dispatcher.drive(session_id))
    await until(lambda: len(rig.model.requests) == 1)
    await rig.say("two", 2)
    rig.model.gate.set()
    await driving
    await rig.clock.advance(1)
    assert states(shown) == [WORKING]
    await closed(rig.turning.attention, rig.clock)


async def test_a_clear_that_is_refused_for_now_is_made_later(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.capabilities = Capabilities(presence_seconds=100)
    attention.working("s1", ROUTE)
    await settle()
    channel.presence_errors = [NotDone("too many requests", retry_after=30)]
    attention.idle("s1")
    await clock.advance(29)
    assert states(channel) == [WORKING, IDLE]
    await clock.advance(2)
    assert states(channel) == [WORKING, IDLE, IDLE]


async def test_a_clear_obeys_the_limit_of_the_channel(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.capabilities = Capabilities(presence_seconds=100)
    attention.working("s1", ROUTE)
    await settle()
    channel.presence_errors = [NotDone("too many requests", retry_after=30)]
    attention.working("s2", Route("slack", "D2"))
    await clock.advance(1)
    attention.idle("s1")
    await clock.advance(20)
    assert len(channel.signs) == 2
    await clock.advance(20)
    assert ("D1", IDLE) in channel.signs


async def test_a_sign_left_out_is_shown_as_soon_as_there_is_room(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.capabilities = Capabilities(presence_seconds=100)
    for n in range(60):
        attention.working(f"s{n}", Route("slack", f"D{n}"))
    await clock.advance(7)
    assert {chat for chat, _ in channel.signs} == {f"D{n}" for n in range(60)}


@pytest.mark.parametrize("error", [Unknown("lost"), NotDone("no"), ZeroDivisionError("/secret")])
async def test_a_clear_that_fails_is_tried_again_seldom(
    attention: Attention, channel: FakeChannel, clock: ManualClock, error: Exception
) -> None:
    channel.capabilities = Capabilities(presence_seconds=100)
    attention.working("s1", ROUTE)
    await settle()
    channel.presence_errors = [error] * 3
    attention.idle("s1")
    await clock.advance(60)
    assert states(channel) == [WORKING, *[IDLE] * 4]
    await clock.advance(60)
    assert len(channel.signs) == 5


async def test_a_clear_that_always_fails_is_given_up_once_the_sign_has_faded(
    attention: Attention, channel: FakeChannel, clock: ManualClock
) -> None:
    channel.capabilities = Capabilities(presence_seconds=20)
    attention.working("s1", ROUTE)
    await settle()
    channel.presence_errors = [Unknown("lost")] * 1_000
    attention.idle("s1")
    await clock.advance(600)
    assert len(channel.signs) <= 1 + 20 / RETRY_SECONDS + 1
    assert attention.shown == 0
