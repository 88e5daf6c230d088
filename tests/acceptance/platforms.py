"""Which cases are run on which platform: on one of them in the small counts, and on both by `--prove`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import pytest

PLATFORMS = ("slack", "telegram")
MOSTLY_SLACK = ("slack", pytest.param("telegram", marks=pytest.mark.prove))
MOSTLY_TELEGRAM = (pytest.param("slack", marks=pytest.mark.prove), "telegram")


class Case(Protocol):
    """One row of a table of cases."""

    @property
    def where(self) -> str:
        """What is different in it, in words."""
        ...

    @property
    def is_sending(self) -> bool:
        """Whether it is about what the platforms differ in, and is always run on both."""
        ...


def on_platforms(cases: Iterable[Case]) -> list[Any]:
    """Return each case with each platform, as parameters; the platforms take turns in the small counts."""
    return [
        pytest.param(
            case,
            platform,
            id=f"{case.where}, on {platform}",
            marks=[] if case.is_sending or number % len(PLATFORMS) == place else [pytest.mark.prove],
        )
        for number, case in enumerate(cases)
        for place, platform in enumerate(PLATFORMS)
    ]
