"""`make bench`: prints one table. Ratios matter; the times are of whatever machine ran it."""

from __future__ import annotations

import asyncio
import sys

from bench.process import measure_processes
from bench.turns import measure_turns


def main() -> None:
    """Measure everything and print it."""
    rows = [*asyncio.run(measure_turns()), *measure_processes()]
    width = max(len(row.name) for row in rows)
    print(f"{'':{width}}  {'ours':>12}  {'floor':>12}  {'ratio':>7}  floor is")
    for row in rows:
        print(
            f"{row.name:{width}}  {row.ours:>9.2f} {row.unit:<2}  {row.floor:>9.2f} {row.unit:<2}  "
            f"{row.ours / row.floor:>6.1f}x  {row.floor_is}"
        )
    print(f"Python {sys.version.split()[0]} on {sys.platform}")


main()
