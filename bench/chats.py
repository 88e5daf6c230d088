"""What thousands of chats leave in memory when each has had one turn."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil

from bench.row import Row
from bench.turns import once_each, talking

WARM = 200
LIMIT_MB = 30


def measure_chats(*, chats: int = 5_000) -> Sequence[Row]:
    """Measure in a process of its own, where nothing that was freed before hides what is taken."""
    script = f"import asyncio; from bench.chats import growth; print(asyncio.run(growth({chats})))"
    told = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [
        Row(
            name=f"memory that {chats:,} chats with one turn each add",
            ours=float(told.splitlines()[-1]),
            floor=LIMIT_MB,
            unit="MB",
            floor_is="what it may be",
            at_most=1,
        )
    ]


async def growth(chats: int, warm: int = WARM) -> float:
    """Return the resident megabytes that the turns of so many chats add, after some that warm everything up."""
    with tempfile.TemporaryDirectory() as folder:
        async with talking(Path(folder)) as (channel, talk):
            await once_each(channel, talk, [f"warm{number}" for number in range(warm)])
            before = _resident()
            await once_each(channel, talk, [f"chat{number}" for number in range(chats)])
            return _resident() - before


def _resident() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 1_000_000
