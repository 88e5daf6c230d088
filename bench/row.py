"""One line of the table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement of ours and of the floor it stands on; `at_most` is what their ratio must not exceed."""

    name: str
    ours: float
    floor: float
    unit: str
    floor_is: str
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        """How many times the floor ours is."""
        return self.ours / self.floor

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met, or None where there is none."""
        return None if self.at_most is None else self.ratio <= self.at_most
