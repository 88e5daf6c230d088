"""`make bench`: prints one table. Ratios matter; the times are of whatever machine ran it.

`python -m bench NAME …` measures these parts only.
"""

from __future__ import annotations

import sys

from bench.parts import PARTS
from bench.table import table


def main(names: list[str]) -> None:
    """Measure what is named, or everything, and print it."""
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"expected names of {', '.join(PARTS)}, got {', '.join(unknown)}")
    rows = [row for name, measure in PARTS.items() if name in names or not names for row in measure()]
    print("\n".join(table(rows)))
    print(f"Python {sys.version.split()[0]} on {sys.platform}")


main(sys.argv[1:])
