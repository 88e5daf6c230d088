"""What can be measured, by the name it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bench.appending import measure_appending
from bench.chats import measure_chats
from bench.compacting import measure_compaction
from bench.counting import measure_counting
from bench.idle import measure_idle
from bench.importing import measure_importing
from bench.load import measure_load
from bench.process import measure_processes
from bench.reading import measure_cold, measure_lists
from bench.replaying import measure_replays
from bench.row import Row
from bench.searching import measure_search
from bench.shapes import measure_shapes
from bench.turns import measure_turns

PARTS: Mapping[str, Callable[[], Sequence[Row]]] = {
    "append": lambda: asyncio.run(measure_appending()),
    "cold": lambda: asyncio.run(measure_cold()),
    "compact": lambda: asyncio.run(measure_compaction()),
    "count": lambda: asyncio.run(measure_counting()),
    "list": lambda: asyncio.run(measure_lists()),
    "replay": lambda: asyncio.run(measure_replays()),
    "search": lambda: asyncio.run(measure_search()),
    "shapes": lambda: asyncio.run(measure_shapes()),
    "chats": measure_chats,
    "turns": lambda: asyncio.run(measure_turns()),
    "load": lambda: asyncio.run(measure_load()),
    "idle": lambda: asyncio.run(measure_idle()),
    "import": lambda: asyncio.run(measure_importing()),
    "process": measure_processes,
}
