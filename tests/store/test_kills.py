"""SIGKILL of a process that appends turns: what it has acknowledged is there, and every session can be read."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from gateway.domain.legality import paired
from gateway.domain.message import Role
from gateway.ports.sessions import SessionQuery
from gateway.store.sqlite.connection import connect
from tests.acceptance.gateway import REPOSITORY
from tests.clock import ManualClock
from tests.stores import open_engine

KILLS, KILLS_PROVING = 4, 200
CHATS = 5

WRITER = """
import asyncio, sys, uuid
from datetime import timedelta
from gateway.domain.errors import LeaseLost
from gateway.domain.keys import Route
from gateway.domain.message import Message, Role, ToolCall
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import open_store
from gateway.wakeups.clock import SystemClock
from tests.stores import count_words, delivery, message

async def chat(store, number):
    route, turns = Route("slack", f"D{number}"), 0
    while True:
        text = uuid.uuid4().hex
        session_id = await store.turns.accept(message(text, text, route=route), NewSession())
        print(text, flush=True)
        lease = await store.leases.acquire(session_lease(session_id), "me", timedelta(seconds=0.001))
        while lease is not None and (turn := await store.turns.begin(session_id, lease)) is not None:
            call = ToolCall(id=f"c{turn.id}", name="look", arguments="{}")
            await store.turns.append_round(turn, lease, [Message(role=Role.ASSISTANT, tool_calls=(call,))], None)
            result = Message(role=Role.TOOL, content="seen", tool_call_id=call.id)
            answer = uuid.uuid4().hex
            rows = [result, Message(role=Role.ASSISTANT, content=answer)]
            await store.turns.finish(turn, lease, rows, [delivery(answer, answer, route=route)], None)
            print(answer, flush=True)

async def main(path, chats):
    make_id = lambda: uuid.uuid4().hex
    async with open_store(f"sqlite:///{path}", clock=SystemClock(), make_id=make_id, count=count_words) as store:
        print("ready", flush=True)
        await asyncio.gather(*(chat(store, number) for number in range(chats)))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.timeout(1200)
async def test_a_killed_process_loses_no_row_it_has_acknowledged_and_no_session(tmp_path: Path, proving: bool) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    path = tmp_path / "store.db"
    acknowledged: set[str] = set()
    kills = KILLS_PROVING if proving else KILLS
    for number in range(kills):
        acknowledged |= _killed(path, chance.random() * 0.15)
        # What is lost stays lost, so that a look now and then finds it.
        if number % 10 == 0 or number == kills - 1:
            with closing(connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok", seed
                connection.execute("INSERT INTO messages_fts (messages_fts) VALUES ('integrity-check')")
            await _judge(tmp_path, acknowledged, f"seed {seed}")


def _killed(path: Path, seconds: float) -> set[str]:
    """Let a writer work for a moment, kill it, and return what it said was stored."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(CHATS)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(seconds)
        process.kill()
        # A line that the kill has cut short acknowledges nothing.
        return {line.strip() for line in process.stdout.readlines() if line.endswith("\n")}


async def _judge(folder: Path, acknowledged: set[str], seed: str) -> None:
    stored: set[str] = set()
    async with open_engine("sqlite", folder, ManualClock()) as store:
        for session in (await store.sessions.list(SessionQuery(limit=1000))).sessions:
            rows = await store.sessions.page(session.id, limit=1 << 40)
            assert len(rows) == session.message_count, seed
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), seed
            legal = paired(rows)
            assert not legal.left_out, seed
            assert [row.seq for row in legal.messages if row.role is Role.USER] == [
                row.seq for row in rows if row.role is Role.USER
            ], seed
            stored |= {row.text for row in rows}
    with closing(connect(folder / "store.db")) as connection:
        waiting = connection.execute("SELECT dedupe_key FROM inbox WHERE state = 'pending'").fetchall()
    stored |= {row["dedupe_key"].removeprefix("msg:") for row in waiting}
    assert acknowledged <= stored, seed
