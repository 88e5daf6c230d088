"""What a channel says of itself is what it has seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gateway.ports.channel import Health
from gateway.ports.vitals import Vitals

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_a_channel_that_has_seen_nothing_is_red() -> None:
    assert Vitals().health(NOON) == Health(receiving=False, detail="has not received yet")


def test_each_moment_is_the_last_of_its_kind_and_what_happens_is_counted() -> None:
    vitals = Vitals()
    vitals.hears(later(1))
    vitals.came_in(later(2))
    vitals.came_in(later(3))
    vitals.went_out(later(4))
    vitals.alive(later(5))
    vitals.count("dropped_own")
    assert vitals.health(later(6)) == Health(
        receiving=True,
        last_inbound=later(3),
        last_outbound=later(4),
        last_alive=later(5),
        counters={"received": 2, "sent": 1, "dropped_own": 1},
    )


def test_a_channel_that_became_deaf_says_why_until_it_hears_again() -> None:
    vitals = Vitals()
    vitals.hears(NOON)
    vitals.is_deaf("the socket closed")
    assert (vitals.health(NOON).receiving, vitals.health(NOON).detail) == (False, "the socket closed")
    vitals.hears(NOON)
    assert (vitals.health(NOON).receiving, vitals.health(NOON).detail) == (True, "")


def test_a_sign_of_life_alone_does_not_say_that_events_come_in() -> None:
    vitals = Vitals()
    vitals.is_deaf("reconnecting")
    vitals.alive(NOON)
    assert not vitals.health(NOON).receiving


def test_silence_for_too_long_is_not_health() -> None:
    vitals = Vitals(stale_after=timedelta(seconds=60))
    vitals.hears(NOON)
    assert vitals.health(later(60)).receiving
    stale = vitals.health(later(61))
    assert (stale.receiving, stale.detail) == (False, "nothing was heard for too long")
    vitals.alive(later(62))
    assert vitals.health(later(63)).receiving


def test_a_reason_is_not_hidden_by_silence() -> None:
    vitals = Vitals(stale_after=timedelta(seconds=60))
    vitals.hears(NOON)
    vitals.is_deaf("another instance polls this bot")
    assert vitals.health(later(600)).detail == "another instance polls this bot"


def test_what_was_told_does_not_change_afterwards() -> None:
    vitals = Vitals()
    told = vitals.health(NOON)
    vitals.count("retries_seen")
    assert told.counters == {}
