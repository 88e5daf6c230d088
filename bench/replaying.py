"""Replaying: what it costs to know what a model is sent, however long the session is."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bench.filling import Words, bare, opened
from bench.pairs import medians
from bench.row import Row
from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role, Sender, ToolCall
from gateway.domain.replay.pipeline import Terms
from gateway.ports.sessions import NewSession, Sessions
from gateway.sessions.manager import SessionManager
from gateway.tokens.o200k import O200kCounter

BUDGET = 128_000
TERMS = Terms(budget=BUDGET)


async def measure_replays(*, rows: int = 10_000, rounds: int = 30) -> Sequence[Row]:
    """Measure a replay of 128,000 tokens: with one new row, and by a process that has just started."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        count = O200kCounter()
        async with opened(path) as store:
            long = await _filled(store.sessions, "long", rows)
            short = await _filled(store.sessions, "short", rows // 4)
            manager = SessionManager(store.sessions, count)
            sent = len((await manager.replay(long, TERMS)).messages)
            lines = _lines(path, long, sent)

            async def warm() -> float:
                await store.sessions.append(long, [Message(role=Role.USER, content="and now?", tokens=7)])
                started = time.perf_counter()
                await manager.replay(long, TERMS)
                return time.perf_counter() - started

            async def decode() -> None:
                for line in lines:
                    json.loads(line)

            warm_times = await medians(rounds, warm, decode)

        async def cold(session_id: str) -> float:
            async with opened(path) as store:
                manager = SessionManager(store.sessions, count)
                started = time.perf_counter()
                await manager.replay(session_id, TERMS)
                return time.perf_counter() - started

        async def read() -> float:
            started = time.perf_counter()
            with closing(bare(path)) as floor:
                _read(floor, long, sent)
                for line in lines:
                    json.loads(line)
                return time.perf_counter() - started

        cold_times = await medians(rounds, lambda: cold(long), lambda: read(), lambda: cold(short))
    what = f"replay {BUDGET:,} tokens ({sent:,} rows) of {rows:,} rows"
    return [
        _row(f"{what}, warm, with one new row", warm_times, "decoding these rows from JSON", 1.0),
        _row(f"{what}, from cold", cold_times[:2], "reading and decoding these rows", 4.0),
        _row(f"{what}, from cold", [cold_times[0], cold_times[2]], f"the same of {rows // 4:,} rows", 1.5),
    ]


async def _filled(sessions: Sessions, chat: str, rows: int) -> str:
    session = await sessions.open(SessionKey("slack", chat), NewSession())
    words = Words()
    made = [message for number in range(rows // 4) for message in _turn(words, number)]
    await sessions.append(session.id, made)
    return str(session.id)


def _turn(words: Words, number: int) -> Sequence[Message]:
    """Return a turn with a round of tools; about 60 tokens a row."""
    alice = Sender(id="U0ABCDEF1", name="Alice")
    call = ToolCall(id=f"call_{number:024d}", name="search", arguments='{"query": "the deploy of last week"}')
    return [
        Message(role=Role.USER, content=words.text(), sender=alice, tokens=50),
        Message(role=Role.ASSISTANT, content=words.text(), tool_calls=(call,), tokens=70),
        Message(role=Role.TOOL, content=words.text(), tool_call_id=call.id, name="search", tokens=60),
        Message(role=Role.ASSISTANT, content=words.text(), tokens=60),
    ]


def _read(connection: sqlite3.Connection, session_id: str, rows: int) -> list[sqlite3.Row]:
    sql = "SELECT * FROM messages WHERE session_id = ? ORDER BY seq DESC LIMIT ?"
    return connection.execute(sql, (session_id, rows)).fetchall()


def _lines(path: Path, session_id: str, rows: int) -> list[str]:
    """Return the newest rows as a store of JSON lines has them."""
    with closing(bare(path)) as connection:
        connection.row_factory = sqlite3.Row
        found = _read(connection, session_id, rows)
    return [
        json.dumps(
            {**json.loads(row["body"] or "{}"), "role": row["role"], "content": row["content"], "seq": row["seq"]}
        )
        for row in found
    ]


def _row(name: str, times: Sequence[float], floor_is: str, at_most: float) -> Row:
    return Row(name=name, ours=times[0] * 1000, floor=times[1] * 1000, unit="ms", floor_is=floor_is, at_most=at_most)
