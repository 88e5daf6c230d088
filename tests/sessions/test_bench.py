"""The bench works: each part at a size that takes no time, so that it cannot rot. People judge what it measures."""

from __future__ import annotations

import pytest

from bench.appending import measure_appending
from bench.chats import growth
from bench.idle import measure_idle
from bench.importing import measure_importing
from bench.load import measure_load
from bench.parts import PARTS
from bench.reading import measure_cold, measure_lists
from bench.row import Row
from bench.searching import measure_search
from bench.table import table
from bench.turns import measure_turns


async def test_every_part_of_the_bench_runs() -> None:
    rows = [
        *await measure_appending(short=4, long=40, rounds=3, at_once=3),
        *await measure_cold(short=200, long=300, rounds=1),
        *await measure_lists(sessions=250, rounds=1),
        *await measure_search(sessions=20, rows_each=20, rounds=1),
        *await measure_importing(sessions=5, rows_each=2, rounds=1),
        *await measure_turns(messages=2, rounds=1),
        *await measure_load(chats=4, rate=40, seconds=0.5, at_once=4, rounds=1),
        *await measure_idle(sessions=3, rows_each=2, seconds=0.5),
    ]
    assert all(row.ours > 0 and row.floor > 0 for row in rows)
    assert len(table(rows)) == len(rows) + 1
    assert await growth(3, warm=3) < 1000


def test_a_target_is_met_or_not_and_the_table_says_so() -> None:
    row = Row(name="a", ours=4, floor=2, unit="ms", floor_is="b", at_most=2)
    assert row.is_met
    assert not Row(name="a", ours=5, floor=2, unit="ms", floor_is="b", at_most=2).is_met
    assert Row(name="a", ours=5, floor=2, unit="ms", floor_is="b").is_met is None
    assert table([row])[1].split() == ["a", "4.000", "ms", "2.000", "ms", "2.00x", "2x", "yes", "b"]


@pytest.mark.parametrize(
    "name", ["append", "cold", "list", "search", "chats", "turns", "load", "idle", "import", "process"]
)
def test_every_part_has_its_name(name: str) -> None:
    assert name in PARTS
