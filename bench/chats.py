"""What thousands of chats leave in memory when each has had one turn."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psutil

from bench.row import Row
from bench.turns import CHATS_AT_ONCE, NullChannel, Talk, talking

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
            await _once_each(channel, talk, "warm", warm)
            before = _resident()
            await _once_each(channel, talk, "chat", chats)
            return _resident() - before


async def _once_each(channel: NullChannel, talk: Talk, name: str, chats: int) -> None:
    for first in range(0, chats, CHATS_AT_ONCE):
        numbers = range(first, min(first + CHATS_AT_ONCE, chats))
        await asyncio.gather(*(talk(f"{name}{number}") for number in numbers))
        channel.sent.clear()


def _resident() -> float:
    gc.collect()
    return psutil.Process().memory_info().rss / 1_000_000
