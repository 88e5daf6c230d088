"""Two processes that write to one session: nothing is lost, and each one's rows stay in its order."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.ports.sessions import NewSession
from tests.acceptance.gateway import HANG_SECONDS, REPOSITORY
from tests.clock import ManualClock
from tests.stores import ROUTE, open_engine

APPENDS = 500

WRITER = """
import asyncio, itertools, sys
from datetime import timedelta
from gateway.domain.message import Message, Role
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import open_store
from gateway.wakeups.clock import SystemClock
from tests.stores import count_words, id_maker, message

async def main(path, name, appends):
    ids = id_maker(name)
    async with open_store(f"sqlite:///{path}", clock=SystemClock(), make_id=ids, count=count_words) as store:
        left = iter(range(appends))
        number = next(left)
        for go in itertools.count():
            if number is None:
                return
            # The other process's turn may take it in; then there is nothing to begin, and the next one is tried.
            session_id = await store.turns.accept(message("go", f"{name}{go}"), NewSession())
            while (lease := await store.leases.acquire(session_lease(session_id), name, timedelta(seconds=60))) is None:
                await asyncio.sleep(0.001)
            while (turn := await store.turns.begin(session_id, lease)) is not None:
                for _ in range(7):
                    if number is not None:
                        row = Message(role=Role.ASSISTANT, content=f"{name}-{number}")
                        await store.turns.append_round(turn, lease, [row], None)
                        number = next(left, None)
                await store.turns.finish(turn, lease, [], [], None)
            await store.leases.release(lease)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def test_two_processes_append_to_one_session_and_nothing_is_lost_or_out_of_order(tmp_path: Path) -> None:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        session = await store.sessions.open(ROUTE.key, NewSession())
        writers = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", WRITER, str(tmp_path / "store.db"), name, str(APPENDS), cwd=REPOSITORY
            )
            for name in ("a", "b")
        ]
        try:
            async with asyncio.timeout(HANG_SECONDS):
                assert [await writer.wait() for writer in writers] == [0, 0]
        finally:
            for writer in writers:
                if writer.returncode is None:
                    writer.kill()
        texts = [row.text for row in await store.sessions.page(session.id, limit=10 * APPENDS)]
        for name in ("a", "b"):
            kept = [text for text in texts if text.startswith(f"{name}-")]
            assert kept == [f"{name}-{number}" for number in range(APPENDS)]
        header = await store.sessions.get(session.id)
        assert header.message_count == len(texts)
