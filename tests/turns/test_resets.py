"""Chats that begin anew by themselves, where a setting says so."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.resets import ResetRule
from gateway.ports.sessions import SessionQuery
from tests.stores import ROUTE, message
from tests.turns.conftest import Rig

NEW_YORK = ZoneInfo("America/New_York")
IDLE = ResetRule(idle=timedelta(minutes=30))
BERLIN = ResetRule(daily_at=time(2, 30), zone=ZoneInfo("Europe/Berlin"))
DAILY = ResetRule(daily_at=time(4), zone=NEW_YORK)


@pytest.mark.parametrize(
    ("rule", "last", "now", "over"),
    [
        (ResetRule(), datetime(2020, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), False),
        (IDLE, datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12, 30, tzinfo=UTC), False),
        (IDLE, datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12, 31, tzinfo=UTC), True),
        # Four in the morning in New York is nine in winter and eight in summer, by UTC.
        (DAILY, datetime(2026, 1, 10, 8, 59, tzinfo=UTC), datetime(2026, 1, 10, 9, 1, tzinfo=UTC), True),
        (DAILY, datetime(2026, 1, 10, 9, 1, tzinfo=UTC), datetime(2026, 1, 11, 8, 59, tzinfo=UTC), False),
        (DAILY, datetime(2026, 7, 10, 7, 59, tzinfo=UTC), datetime(2026, 7, 10, 8, 1, tzinfo=UTC), True),
        (DAILY, datetime(2026, 7, 10, 8, 1, tzinfo=UTC), datetime(2026, 7, 11, 7, 59, tzinfo=UTC), False),
        (DAILY, datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 11, tzinfo=UTC), True),
        # Half past two does not exist in Berlin on the day the clock goes forward, and comes twice when it goes back.
        (BERLIN, datetime(2026, 3, 29, 1, 5, tzinfo=UTC), datetime(2026, 3, 29, 1, 10, tzinfo=UTC), False),
        (BERLIN, datetime(2026, 3, 29, 1, 5, tzinfo=UTC), datetime(2026, 3, 29, 1, 40, tzinfo=UTC), True),
        (BERLIN, datetime(2026, 10, 24, 20, tzinfo=UTC), datetime(2026, 10, 25, 1, 10, tzinfo=UTC), True),
        (BERLIN, datetime(2026, 10, 25, 1, 10, tzinfo=UTC), datetime(2026, 10, 25, 9, tzinfo=UTC), False),
    ],
)  # fmt: skip
def test_a_rule_says_whether_a_session_is_over(rule: ResetRule, last: datetime, now: datetime, over: bool) -> None:
    assert rule.is_over(last, now) is over


async def test_after_a_silence_a_new_session_begins_and_the_old_one_stays_listed(rig: Rig) -> None:
    rig.options = rig.options.model_copy(update={"reset_idle_minutes": 60})
    rig.build()
    first = await rig.turn("remember me", 1)
    await rig.clock.advance(3000)
    assert await rig.turn("and me", 2) == first
    await rig.clock.advance(3601)
    second = await rig.turn("who am I?", 3)
    assert second != first
    assert [m.text for m in rig.model.requests[-1].messages] == ["who am I?"]
    listed = (await rig.store.sessions.list(SessionQuery())).sessions
    assert {(session.id, session.closed_at is not None) for session in listed} == {(first, True), (second, False)}


async def test_by_default_nothing_is_ever_over(rig: Rig) -> None:
    first = await rig.turn("remember me", 1)
    await rig.clock.advance(400 * 24 * 3600)
    await rig.intake(message("still there?", 2))
    assert (await rig.store.sessions.get(ROUTE.key)).id == first
