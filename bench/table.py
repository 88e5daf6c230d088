"""The table as people read it."""

from __future__ import annotations

from collections.abc import Sequence

from bench.row import Row


def table(rows: Sequence[Row]) -> Sequence[str]:
    """Return the lines of a table, a header first."""
    width = max(len(row.name) for row in rows)
    head = f"{'':{width}}  {'ours':>12}  {'floor':>12}  {'ratio':>7}  {'must be':>7}  {'met':>3}  floor is"
    return [head, *(_line(row, width) for row in rows)]


def _line(row: Row, width: int) -> str:
    must_be = "" if row.at_most is None else f"{row.at_most:g}x"
    met = {None: "", True: "yes", False: "NO"}[row.is_met]
    return (
        f"{row.name:{width}}  {row.ours:>9.3f} {row.unit:<2}  {row.floor:>9.3f} {row.unit:<2}  "
        f"{row.ratio:>6.2f}x  {must_be:>7}  {met:>3}  {row.floor_is}"
    )
