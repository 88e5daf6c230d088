"""What was answered arrives: in order, whole, once, through faults and deaths at every step."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from loguru import logger

from gateway.delivery.lanes import MOST_PARTS
from gateway.delivery.options import OnUncertain
from gateway.domain.backoff import LONGEST_SECONDS, backoff
from gateway.domain.errors import LONGEST_WAIT, AuthFailed, Gone, NotDone, Unavailable, Unknown, Unreachable
from gateway.domain.keys import Route
from gateway.domain.outbound import DeliveryState
from gateway.domain.phrases import ENGLISH
from tests.delivery.conftest import ROUTE, Rig
from tests.stores import delivery


class Killed(BaseException):
    """Stands for a process that ends between two instructions: nothing after it runs, nothing of it is caught."""


async def state(rig: Rig) -> list[DeliveryState]:
    return [found.state for found in await rig.store.outbox.list()]


async def test_a_delivery_is_shown_in_parts_in_order(rig: Rig) -> None:
    await rig.send("abcdefghij", "second")
    assert rig.channel.texts == ["abcd", "efgh", "ij", "seco", "nd"]
    assert await state(rig) == [DeliveryState.DONE] * 2
    assert len({key for _, _, key in rig.channel.shown}) == 5


async def test_working_an_empty_lane_does_nothing_and_gives_it_back(rig: Rig) -> None:
    await rig.work()
    assert await rig.store.leases.holders() == []


async def test_a_rate_limit_is_a_deadline_and_the_rest_waits_in_order(rig: Rig) -> None:
    rig.channel.fail(NotDone("too many requests", retry_after=33))
    await rig.send("ab", "cd")
    await rig.clock.advance(32)
    await rig.work()
    assert rig.channel.texts == []
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["ab", "cd"]


async def test_a_rate_limit_never_uses_up_the_attempts(rig: Rig) -> None:
    for _ in range(20):
        rig.channel.fail(NotDone("too many requests", retry_after=1))
    await rig.send("ab")
    for _ in range(20):
        await rig.clock.advance(1)
        await rig.work()
    assert rig.channel.texts == ["ab"]


async def test_a_held_lane_holds_no_other(rig: Rig) -> None:
    other = Route("fake", "2")
    rig.channel.fail(NotDone("too many requests", retry_after=3600))
    await rig.send("ab")
    await rig.send("cd", route=other)
    assert rig.channel.texts == ["cd"]


async def test_a_refused_formatting_is_sent_plain_once_and_said_in_the_log_without_the_text(rig: Rig) -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message} {extra}")
    rig.channel.fail(NotDone("can't parse entities", formatting=True))
    await rig.send("*ab")
    logger.remove(sink)
    assert rig.channel.texts == ["plain *ab"]
    (line,) = [line for line in lines if "plain" in line]
    assert "can't parse entities" in line
    assert "*ab" not in line


async def test_a_plain_form_that_is_refused_too_is_not_tried_for_ever(rig: Rig) -> None:
    for _ in range(20):
        rig.channel.fail(NotDone("can't parse entities", formatting=True))
    await rig.send("*ab", "cd")
    for _ in range(6):
        await rig.clock.advance(LONGEST_SECONDS)
        await rig.work()
    assert await state(rig) == [DeliveryState.DEAD, DeliveryState.DEAD]


async def test_what_cannot_heal_is_given_up_at_once_and_the_lane_goes_on(rig: Rig) -> None:
    rig.channel.fail(NotDone("bot was blocked by the user", fatal=True))
    await rig.send("ab", "cd")
    assert rig.channel.texts == ["cd"]
    (dead,) = await rig.store.outbox.list(state=DeliveryState.DEAD)
    assert dead.error == "bot was blocked by the user"


async def test_what_can_heal_is_tried_with_growing_waits_and_then_given_up_visibly(rig: Rig) -> None:
    for _ in range(4):
        rig.channel.fail(NotDone("connection refused"))
    await rig.send("ab")
    for seconds in (1, 2, 4):
        (found,) = await rig.store.outbox.list()
        assert found.not_before is not None
        assert (found.not_before - rig.clock.now()).total_seconds() == seconds
        await rig.clock.advance(seconds)
        await rig.work()
    assert await state(rig) == [DeliveryState.DEAD]


@pytest.mark.parametrize("away", [Unreachable("no route"), AuthFailed("token revoked")])
async def test_an_hour_without_the_platform_costs_an_hour_and_no_answer(rig: Rig, away: Exception) -> None:
    for _ in range(1000):
        rig.channel.fail(away)
    await rig.send("ab", "cd")
    for _ in range(60):
        await rig.clock.advance(60)
        await rig.work()
    rig.channel.faults.clear()
    await rig.clock.advance(60)
    await rig.work()
    assert rig.channel.texts == ["ab", "cd"]
    assert await rig.store.outbox.possible_duplicates() == 0


async def test_a_platform_that_never_comes_back_is_given_up_visibly_after_a_day(rig: Rig) -> None:
    for _ in range(3):
        rig.channel.fail(Unreachable("no route"))
    await rig.send("ab")
    await rig.clock.advance(23 * 3600)
    await rig.work()
    assert await state(rig) == [DeliveryState.PENDING]
    await rig.clock.advance(3600)
    await rig.work()
    assert await state(rig) == [DeliveryState.DEAD]


async def test_a_message_somebody_deleted_is_not_posted_again(rig: Rig) -> None:
    rig.channel.fail(Gone("deleted"))
    await rig.send("abcdef")
    assert rig.channel.texts == ["ef"]
    assert await state(rig) == [DeliveryState.DONE]


async def test_a_refused_token_keeps_the_delivery_and_is_no_possible_duplicate(rig: Rig) -> None:
    rig.channel.fail(AuthFailed("token revoked"))
    await rig.send("ab")
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["ab"]
    assert await rig.store.outbox.possible_duplicates() == 0


async def test_a_platform_that_may_not_be_asked_is_one_that_cannot_be(rig: Rig) -> None:
    rig.new_process(can_find=True)
    rig.channel.find_error = AuthFailed("the scope channels:history is missing")
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    await rig.send("ab")
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["ab", "ab"]
    assert await rig.store.outbox.possible_duplicates() == 1


async def test_a_platform_that_does_not_answer_is_asked_again_before_anything_is_sent(rig: Rig) -> None:
    rig.new_process(can_find=True)
    rig.channel.find_error = Unavailable("no answer")
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    await rig.send("ab")
    await rig.clock.advance(1)
    await rig.work()
    rig.channel.find_error = None
    await rig.clock.advance(2)
    await rig.work()
    assert rig.channel.texts == ["ab"]


async def test_a_private_note_stands_in_no_history_and_is_counted_when_sent_again(rig: Rig) -> None:
    rig.new_process(can_find=True)
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    note = delivery("ab", 1, route=ROUTE)
    await rig.store.outbox.enqueue([replace(note, outbound=replace(note.outbound, only_for="U1"))])
    await rig.work()
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["ab", "ab"]
    assert await rig.store.outbox.possible_duplicates() == 1


@pytest.mark.parametrize("applied", [True, False])
async def test_a_lost_answer_is_looked_for_where_the_platform_can_be_asked(rig: Rig, applied: bool) -> None:
    rig.new_process(can_find=True)
    rig.channel.fail(Unknown("the answer was lost"), applied=applied)
    await rig.send("abcdef")
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["abcd", "ef"]
    assert await rig.store.outbox.possible_duplicates() == 0


async def test_a_lost_answer_nobody_can_be_asked_about_is_sent_again_and_counted(rig: Rig) -> None:
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    await rig.send("abcdef")
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["abcd", "abcd", "ef"]
    assert await rig.store.outbox.possible_duplicates() == 1


async def test_or_a_note_takes_its_place(rig: Rig) -> None:
    rig.new_process(on_uncertain=OnUncertain.NOTE)
    rig.channel.part_size = 1000
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    await rig.send("abcdef")
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["abcdef", ENGLISH.uncertain]
    assert await rig.store.outbox.possible_duplicates() == 0


async def test_the_note_for_a_private_part_is_private_too(rig: Rig) -> None:
    rig.new_process(on_uncertain=OnUncertain.NOTE)
    rig.channel.part_size = 1000
    rig.channel.fail(Unknown("the answer was lost"), applied=True)
    wish = delivery("ab", 1, route=ROUTE)
    await rig.store.outbox.enqueue([replace(wish, outbound=replace(wish.outbound, only_for="U1"))])
    await rig.work()
    await rig.clock.advance(1)
    await rig.work()
    assert [(part.text, part.details.get("only_for")) for _, part, _ in rig.channel.shown] == [
        ("ab", "U1"),
        (ENGLISH.uncertain, "U1"),
    ]


@pytest.mark.parametrize("can_find", [True, False])
@pytest.mark.parametrize("part", range(3))
@pytest.mark.parametrize("applied", [True, False])
async def test_a_process_killed_in_a_call_repeats_at_most_the_part_in_flight(
    rig: Rig, can_find: bool, part: int, applied: bool
) -> None:
    rig.new_process(can_find=can_find)
    rig.channel.fail(Killed(), applied=applied, after=part)
    with pytest.raises(Killed):
        await rig.send("abcdefghij")
    await rig.clock.advance(31)
    rig.new_process(can_find=can_find)
    await rig.work()
    whole = ["abcd", "efgh", "ij"]
    doubled = applied and not can_find
    assert rig.channel.texts == (whole[: part + 1] + whole[part:] if doubled else whole)
    assert await rig.store.outbox.possible_duplicates() == (0 if can_find else 1)


async def test_a_fault_of_ours_keeps_the_delivery_and_is_said_in_the_log_only(rig: Rig) -> None:
    rig.channel.fail(ZeroDivisionError("/secret/path"))
    await rig.send("ab")
    (found,) = await rig.store.outbox.list()
    assert found.error == "internal error (ZeroDivisionError)"
    await rig.clock.advance(1)
    await rig.work()
    assert rig.channel.texts == ["ab"]


async def test_nobody_is_buried_under_the_parts_of_one_answer(rig: Rig) -> None:
    await rig.send("abcd" * 5000)
    assert len(rig.channel.shown) == MOST_PARTS
    assert rig.channel.texts[-1] == ENGLISH.cut_off[:4]


@pytest.mark.parametrize("asked", [float("nan"), float("inf"), -5.0, 1e30, 1e12])
async def test_a_wait_that_cannot_be_kept_is_bounded(rig: Rig, asked: float) -> None:
    rig.channel.fail(NotDone("too many requests", retry_after=asked))
    await rig.send("ab")
    (found,) = await rig.store.outbox.list()
    assert found.not_before is not None
    waits = (found.not_before - rig.clock.now()).total_seconds()
    assert waits == (0 if asked < 0 else LONGEST_WAIT)


async def test_two_workers_of_one_lane_show_each_part_once(rig: Rig) -> None:
    lanes = [rig.lanes]
    for _ in range(3):
        rig.new_process()
        lanes.append(rig.lanes)
    await rig.send("abcdefghij")
    await rig.store.outbox.enqueue([])
    await asyncio.gather(*(worker.work(ROUTE.lane) for worker in lanes))
    assert rig.channel.texts == ["abcd", "efgh", "ij"]


async def test_a_lane_of_a_channel_that_is_not_here_is_left_alone(rig: Rig) -> None:
    elsewhere = replace(ROUTE, channel="elsewhere")
    await rig.send("ab", route=elsewhere)
    assert await state(rig) == [DeliveryState.PENDING]
    assert await rig.store.leases.holders() == []


def test_waits_grow_to_a_limit_and_are_spread() -> None:
    assert [backoff(n, 1.0) for n in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert backoff(3, 0.0) == 4
    assert backoff(10_000, 0.5) == 45
