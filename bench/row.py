"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement of ours, and of the floor it stands on."""

    name: str
    ours: float
    floor: float
    unit: str
    floor_is: str
