"""Texts made to be slow: the worst shapes for what reads every text, beside plain prose of the same length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.pairs import medians
from bench.row import Row
from gateway.domain.decoration import neutral
from gateway.domain.scrub import for_people

SIZE = 4_000
_UNITS = ("(/aaa", "(/", "(/a b", " /a", " · ", " · ref a", " 2026-11-30 12:00 UTC", ") ", "=", "<think>", "`", "[")
_BEGINNINGS = ("[image: ", "[from: ", "[announcement: ", "[context: ", 'message("', "")
_PROSE = "The quick brown fox jumps over the lazy dog. "


async def measure_shapes(*, rounds: int = 5) -> Sequence[Row]:
    """Measure the slowest of many shapes of one long line."""
    shapes = [(begin + unit * SIZE)[:SIZE] for begin in _BEGINNINGS for unit in _UNITS]
    prose = (_PROSE * SIZE)[:SIZE]
    return [
        # A line is looked at up to a length, so the worst of them costs a constant.
        await _measured("scrubbing for people", for_people, shapes, prose, rounds, at_most=2_000),
        await _measured("neutralising a person's text", neutral, shapes, "[" + prose, rounds, at_most=100),
    ]


async def _measured(
    what: str, read: Callable[[str], str], shapes: Sequence[str], prose: str, rounds: int, at_most: float
) -> Row:
    async def plain() -> None:
        read(prose)

    slowest, floor = 0.0, 0.0
    for shape in shapes:

        async def shaped(shape: str = shape) -> None:
            read(shape)

        times = await medians(rounds, shaped, plain)
        if times[0] > slowest:
            slowest, floor = times
    name = f"{what}: the slowest of {len(shapes)} shapes of {SIZE:,} characters"
    return Row(name=name, ours=slowest * 1e6, floor=floor * 1e6, unit="µs", floor_is="prose as long", at_most=at_most)
