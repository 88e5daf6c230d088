"""What sessions cost that nobody writes in: the CPU of a gateway with thousands of them and nothing to do."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.filling import fill_answered
from bench.null import NULL, running
from bench.row import Row
from gateway.ports.sessions import SessionQuery

SWEEPING = {"TRUNKLINE_GATEWAY__SWEEP_SECONDS": "1"}


async def measure_idle(*, sessions: int = 10_000, rows_each: int = 4, seconds: float = 10) -> Sequence[Row]:
    """Measure a gateway over a full store, and over an empty one, while both do nothing but sweep."""
    with tempfile.TemporaryDirectory() as folder:
        full, empty = Path(folder) / "full", Path(folder) / "empty"
        full.mkdir()
        empty.mkdir()
        fill_answered(full / "trunkline.db", channel=NULL, sessions=sessions, rows_each=rows_each)
        spent = [await _spent(folder, sessions, seconds) for folder, sessions in ((empty, 0), (full, sessions))]
    return [
        Row(
            name=f"CPU of {sessions:,} idle sessions, {seconds:g} seconds with a sweep in each",
            ours=spent[1] * 1000,
            floor=spent[0] * 1000,
            unit="ms",
            floor_is="the same with none",
            at_most=1.5,
        )
    ]


async def _spent(folder: Path, sessions: int, seconds: float) -> float:
    """Return the CPU seconds that a gateway takes in so many seconds, all its threads together."""
    async with running(folder, SWEEPING) as (core, _):
        assert len((await core.store.sessions.list(SessionQuery(limit=sessions + 1))).sessions) == sessions
        # What a start costs is over.
        await asyncio.sleep(min(seconds / 10, 1))
        before = time.process_time()
        await asyncio.sleep(seconds)
        return time.process_time() - before
