"""What a look at an installation finds, one finding a check; decided here, shown elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any


class Grade(StrEnum):
    """How a check came out. A warning is news an owner wants to have; what is wrong keeps the gateway from working."""

    OK = "ok"
    WARN = "warn"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one check found, and what to do next if that is a problem. Holds no secret and nobody's words.

    All of `details` have the same fields.
    """

    check: str
    mark: Grade
    found: str
    details: tuple[Mapping[str, Any], ...] = ()
    todo: str = ""


def ok(check: str, found: str) -> Finding:
    """Return that all is well."""
    return Finding(check=check, mark=Grade.OK, found=found)


def warn(check: str, found: str, todo: str, details: Sequence[Mapping[str, Any]] = ()) -> Finding:
    """Return news."""
    return Finding(check=check, mark=Grade.WARN, found=found, details=tuple(details), todo=todo)


def wrong(check: str, found: str, todo: str, details: Sequence[Mapping[str, Any]] = ()) -> Finding:
    """Return what has to be mended."""
    return Finding(check=check, mark=Grade.WRONG, found=found, details=tuple(details), todo=todo)


def spoken(age: timedelta) -> str:
    """Return how long something is ago, as people say it: `3 hours`."""
    minutes = int(age.total_seconds() // 60)
    if minutes < 1:
        return "less than a minute"
    for unit, size in (("day", 24 * 60), ("hour", 60)):
        if minutes >= size:
            return count(minutes // size, unit)
    return count(minutes, "minute")


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things: `1 hour`, `3 hours`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"
