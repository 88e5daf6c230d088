"""What the doctor says of what the store holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from gateway.app.doctor.findings import spoken
from gateway.domain.keys import Route
from gateway.ports.leases import lane_lease
from gateway.store import Store
from tests.acceptance.gateway import REPOSITORY
from tests.cli.doctor.patient import CHECKS, Patient
from tests.cli.setting_aside import set_aside
from tests.cli.shelf import DIRECT, FAMILY
from tests.stores import delivery, message


async def _give_up(store: Store, route: Route, n: int, why: str) -> None:
    await store.outbox.enqueue([delivery("private words", n, route=route)])
    lease = await store.leases.acquire(lane_lease(route.lane), "test", timedelta(seconds=30))
    assert lease is not None
    head = await store.outbox.next(route.lane, lease)
    assert head is not None
    await store.outbox.dead(head.id, lease, why)
    await store.leases.release(lease)


def test_turns_that_were_set_aside_are_news_and_the_newest_are_named(patient: Patient) -> None:
    turns = [set_aside(patient, message("private words", 100 + n, route=FAMILY)) for n in range(7)]
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +turns set aside +7, the newest [12] hours? ago$", out, re.MULTILINE)
    assert "private" not in out
    found = patient.found()["turns set aside"]
    assert found["details"] == [
        {
            "begun": turn.started_at.isoformat(timespec="microseconds"),
            "session": "telegram:-100",
            "reference": turn.id[:8],
            "id": turn.session_id,
        }
        for turn in reversed(turns[2:])
    ]
    row = next(line for line in out.splitlines() if line.endswith(f"{turns[-1].id[:8]}   {turns[-1].session_id}"))
    assert row.split("  ")[1] == f"{turns[-1].started_at:%Y-%m-%d %H:%M} UTC"
    assert "`trunkline sessions show ID`" in out


def test_deliveries_given_up_are_told_by_channel_without_secrets_and_controls(patient: Patient) -> None:
    whys = ((DIRECT, "not_in_channel"), (FAMILY, "old"), (FAMILY, "\x1b[2Jtoken 123456:hidden-hidden refused"))
    for n, (route, why) in enumerate(whys):
        patient.act(lambda store, n=n, route=route, why=why: _give_up(store, route, n, why))  # type: ignore[misc]
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +deliveries given up +3, the newest 2 hours old$", out, re.MULTILINE)
    assert "hidden" not in out
    assert "private" not in out
    assert "\x1b" not in out
    assert re.search(r"^  telegram +2 .* UTC  \\x1b\[2Jtoken \*\*\* refused$", out, re.MULTILINE)
    assert [(one["channel"], one["count"]) for one in patient.found()["deliveries given up"]["details"]] == [
        ("telegram", 2),
        ("slack", 1),
    ]


def test_deliveries_that_wait_are_told_once_they_wait_long(patient: Patient) -> None:
    for n, route in enumerate((DIRECT, DIRECT, Route("chat", "local"), Route("gone", "1"))):
        patient.act(lambda store, n=n, route=route: store.outbox.enqueue([delivery("private", n, route=route)]))  # type: ignore[misc]
    patient.sql("UPDATE outbox SET error = 'rate_limited' WHERE position = 1")
    found = patient.found()["deliveries waiting"]
    assert found["mark"] == "warn"
    assert found["found"] == "4 for longer than 10 minutes, the oldest for 2 hours"
    assert [(one["channel"], one["count"], one["why"]) for one in found["details"]] == [
        ("gone", 1, "no channel of this name is enabled here"),
        ("chat", 1, "that terminal is not open"),
        ("slack", 2, "rate_limited"),
    ]
    assert "`trunkline run` starts it" in found["todo"]
    with patient.gateway():
        assert "go out by themselves" in patient.found()["deliveries waiting"]["todo"]
    moment = (datetime.now(UTC) - timedelta(minutes=8)).timestamp() * 1_000_000
    patient.sql(f"UPDATE outbox SET created_at = {moment:.0f}")
    assert patient.marks() == {}


def test_records_that_were_put_aside_as_damaged_are_counted(patient: Patient) -> None:
    patient.sql(
        "INSERT INTO set_aside (session_id, field, value) VALUES ('x', 'grants', 'private')",
        "UPDATE inbox SET state = 'set aside', body = 'private'",
    )
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +damaged records +2 could not be read and were put aside$", out, re.MULTILINE)
    assert "private" not in out
    assert patient.found()["damaged records"]["details"] == [
        {"what": "values of sessions", "count": 1},
        {"what": "events that came in", "count": 1},
    ]


@pytest.mark.parametrize("key", ["'slack'", "'a:b:c:d:e'"])
def test_damage_that_keeps_the_store_from_being_read_is_told_and_no_traceback(patient: Patient, key: str) -> None:
    set_aside(patient, message("private words", 100))
    patient.sql(f"UPDATE sessions SET key = {key}")
    code, out = patient.look()
    assert code == 1
    assert re.search(r"^wrong +contents of the store +cannot be read: ", out, re.MULTILINE)
    assert "private" not in out


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "less than a minute"),
        (timedelta(seconds=119), "1 minute"),
        (timedelta(minutes=59), "59 minutes"),
        (timedelta(minutes=119), "1 hour"),
        (timedelta(days=2, hours=5), "2 days"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(age: timedelta, words: str) -> None:
    assert spoken(age) == words


def test_the_page_tells_of_every_check_and_field(patient: Patient) -> None:
    page = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert rows == [*CHECKS[:5], "channel NAME", *CHECKS[7:], "contents of the store"]
    (one, *_) = patient.found().values()
    assert all(f"`{field}`" in page for field in one)
