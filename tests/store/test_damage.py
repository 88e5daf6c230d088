"""Damage: one bad record costs that record, never the chat."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loguru import logger

from gateway.domain.keys import Route
from gateway.domain.message import Kind, Message, Role
from gateway.domain.outbound import DeliveryState, Part, PartState
from gateway.domain.replay.pipeline import Terms, build
from gateway.ports.leases import lane_lease, session_lease
from gateway.ports.sessions import NewSession, SessionQuery
from gateway.store import damage, rows
from gateway.store.codec import to_json
from tests.clock import ManualClock
from tests.stores import ROUTE, delivery, message, open_engine

json_values: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        st.none()
        | st.booleans()
        | st.integers(-5, 5)
        | st.text(max_size=5)
        | st.lists(json_values, max_size=3)
        | st.dictionaries(st.text(max_size=8), json_values, max_size=3)
    )
)
fields = st.sampled_from(
    ["content", "tool_calls", "thinking_blocks", "sender", "media", "extra", "name", "provider", "reasoning_content"]
)
bodies = st.dictionaries(fields, json_values, max_size=5).map(to_json) | st.text(max_size=20) | st.none()


def stored(**columns: Any) -> dict[str, Any]:
    """Return a row as the database gives it."""
    plain = {
        "session_id": "s",
        "role": "user",
        "kind": "chat",
        "content": "hi",
        "body": None,
        "seq": 1,
        "v": 1,
        "tokens": 5,
    }
    return {**plain, "turn_id": None, "event_id": None, "created_at": 0, **columns}


@given(bodies, st.sampled_from(["user", "assistant", "tool", "wizard", ""]), st.sampled_from(["chat", "future", ""]))
def test_any_body_role_and_kind_is_read_as_a_row_that_can_be_replayed(body: str | None, role: str, kind: str) -> None:
    row = rows.decode(stored(body=body, role=role, kind=kind))
    assert isinstance(row, Message)
    build([row], Terms(budget=1000), len)


@pytest.mark.parametrize("field", ["tool_calls", "sender", "media", "thinking_blocks", "extra"])
def test_a_damaged_field_costs_itself_and_not_the_words(field: str) -> None:
    assert rows.decode(stored(body=to_json({field: 5}))).text == "hi"


def test_a_row_of_a_kind_this_release_does_not_know_is_seen_by_people_only() -> None:
    assert rows.decode(stored(kind="hologram")).kind is Kind.NOTICE
    row = rows.decode(stored(role="wizard"))
    assert (row.kind, row.role) == (Kind.NOTICE, Role.SYSTEM)


async def test_an_event_that_cannot_be_read_is_set_aside_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session_id = await store.turns.accept(message("lost", 1), NewSession())
        await store.turns.accept(message("kept", 2), NewSession())
        assert session_id is not None
        _execute(tmp_path, "UPDATE inbox SET body = '{\"route\": 5' WHERE dedupe_key = 'msg:1'")
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
        assert lease is not None
        turn = await store.turns.begin(session_id, lease)
        assert turn is not None
        assert [row.text for row in await store.sessions.page(session_id)] == ["kept"]
        await store.turns.finish(turn, lease, [], [], None)
        assert await store.turns.release_if_idle(session_id, lease)
    assert _execute(tmp_path, "SELECT body FROM inbox WHERE state = 'set aside'") == [('{"route": 5',)]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE outbox SET body = 'x' WHERE dedupe_key = 'test:1'",
        "UPDATE outbox SET body = NULL WHERE dedupe_key = 'test:1'",
        "UPDATE outbox SET route = '{}' WHERE dedupe_key = 'test:1'",
        "UPDATE outbox_parts SET body = 'x'",
        "UPDATE outbox_parts SET body = NULL",
    ],
)
async def test_a_delivery_that_cannot_be_read_is_dead_and_its_lane_goes_on(tmp_path: Path, damage: str) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        await store.outbox.enqueue([delivery("lost", 1), delivery("kept", 2)])
        lease = await store.leases.acquire(lane_lease(ROUTE.lane), "me", timedelta(seconds=30))
        assert lease is not None
        first = await store.outbox.next(ROUTE.lane, lease)
        assert first is not None
        if "parts" in damage:
            await store.outbox.save_parts(first.id, lease, [Part(text="lost")])
        _execute(tmp_path, damage)
        second = await store.outbox.next(ROUTE.lane, lease)
        assert second is not None
        assert second.outbound is not None
        assert second.outbound.text == "kept"
        (dead,) = await store.outbox.list(state=DeliveryState.DEAD)
        assert (dead.id, dead.error) == (first.id, "damaged: it cannot be read")


async def test_a_part_in_a_state_that_is_none_is_looked_for_before_it_is_sent(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        await store.outbox.enqueue([delivery("a", 1)])
        lease = await store.leases.acquire(lane_lease(ROUTE.lane), "me", timedelta(seconds=30))
        assert lease is not None
        first = await store.outbox.next(ROUTE.lane, lease)
        assert first is not None
        await store.outbox.save_parts(first.id, lease, [Part(text="a")])
        _execute(tmp_path, "UPDATE outbox_parts SET state = 'levitating'")
        again = await store.outbox.next(ROUTE.lane, lease)
        assert again is not None
        assert (again.parts[0].state, again.parts[0].opening_since is not None) == (PartState.OPENING, True)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET origin = '{\"kind\": 5}', metadata = 'x'",
        "UPDATE sessions SET updated_at = 9000000000000000000, created_at = -5",
        "UPDATE turns SET route = 'x'",
        "UPDATE leases SET expires_at = 0",
        "UPDATE messages SET tokens = 'many', created_at = 9000000000000000000",
    ],
)
async def test_a_chat_with_a_damaged_record_takes_messages_in_and_answers(tmp_path: Path, damage: str) -> None:
    clock = ManualClock()
    async with open_engine("sqlite", tmp_path, clock) as store:
        session_id = await store.turns.accept(message("one", 1), NewSession())
        assert session_id is not None
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
        assert lease is not None
        await store.turns.begin(session_id, lease)
        await clock.advance(31)
        _execute(tmp_path, damage)
        assert await store.turns.accept(message("two", 2), NewSession()) == session_id
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
        assert lease is not None
        turn = await store.turns.begin(session_id, lease)
        assert turn is not None
        assert turn.route.key == ROUTE.key
        await store.turns.finish(turn, lease, [], [], None)
        assert (await store.sessions.get(session_id)).key == ROUTE.key
        await store.sessions.page(session_id)
        assert await store.leases.holders() != []


async def test_damaged_columns_of_a_header_read_as_empty(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(message("", 1).key, NewSession(metadata={"a": 1}))
        _execute(
            tmp_path,
            "UPDATE sessions SET metadata = 'x', grants = '[]', extra_roots = '{}', origin = '7', compaction = ''",
        )
        read = await store.sessions.get(session.id)
        assert (read.metadata, read.grants, read.extra_roots, read.origin, read.compaction) == ({}, {}, (), None, {})


async def test_a_mark_this_release_does_not_know_hides_its_row(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    async with open_engine("sqlite", tmp_path, clock) as store:
        session_id = await store.turns.accept(message("hi", 1), NewSession())
        assert session_id is not None
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=30))
        assert lease is not None
        await store.turns.begin(session_id, lease)
        _execute(tmp_path, "INSERT INTO message_marks SELECT session_id, seq, 'vanished', 0 FROM messages")
        (row,) = await store.sessions.page(session_id)
        assert row.marks


def _execute(folder: Path, sql: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(folder / "store.db")) as connection:
        found = connection.execute(sql, values).fetchall()
        connection.commit()
    return found


HEADER_DAMAGE = {
    "metadata": "{'a': 1",
    "grants": "[1]",
    "compaction": "null",
    "extra_roots": "{}",
    "consolidated_through": "soon",
    "updated_at": "yesterday",
}


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What is warned of, with the record it names."""
    damage.tell.cache_clear()
    heard: list[str] = []
    sink = logger.add(lambda line: heard.append(f"{line.record['extra'].get('record')}: {line}"), level="WARNING")
    yield heard
    logger.remove(sink)


@pytest.mark.parametrize(("field", "value"), HEADER_DAMAGE.items())
async def test_a_damaged_header_field_reads_as_empty_and_is_told_once(
    tmp_path: Path, field: str, value: str, warnings: list[str]
) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        _execute(tmp_path, f"UPDATE sessions SET {field} = ?", value)
        for _ in range(3):
            await store.sessions.get(session.id)
            await store.sessions.list(SessionQuery())
    assert [line for line in warnings if session.id in line] == warnings
    assert len(warnings) == 1


def test_the_damaged_time_of_a_row_is_told_of_the_row_and_not_of_its_session(warnings: list[str]) -> None:
    for seq in (1, 2, 2):
        assert rows.decode(stored(seq=seq, created_at="never")).seq == seq
    assert [line.partition(":")[0] for line in warnings] == ["s#1", "s#2"]


@pytest.mark.parametrize("field", ["metadata", "grants", "compaction", "extra_roots"])
async def test_a_damaged_header_field_is_kept_aside_before_a_new_one_takes_its_place(
    tmp_path: Path, field: str
) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        _execute(tmp_path, f"UPDATE sessions SET {field} = ?", HEADER_DAMAGE[field])
        new = [{"path": "/tmp"}] if field == "extra_roots" else {"a": 1}
        await store.sessions.update(session.id, {field: new})
        await store.sessions.update(session.id, {field: new})
        kept = _execute(tmp_path, "SELECT session_id, field, value FROM set_aside")
        assert kept == [(session.id, field, HEADER_DAMAGE[field])]
        await store.sessions.delete(session.id)
        assert _execute(tmp_path, "SELECT * FROM set_aside") == []


async def test_a_fork_takes_a_damaged_row_along_as_it_is(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        await store.sessions.append(session.id, [Message(role=Role.USER, content="hi", name="x")])
        _execute(tmp_path, "UPDATE messages SET body = '{torn'")
        await store.sessions.fork(session.id, 2, Route("slack", "D2").key)
    assert _execute(tmp_path, "SELECT body FROM messages") == [("{torn",), ("{torn",)]
