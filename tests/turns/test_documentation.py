"""The page about turns tells of every event there is, and of every mode."""

from __future__ import annotations

import re
from pathlib import Path

from gateway.domain.busy import Busy
from gateway.turns.telling import Step

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "turns.md").read_text(encoding="utf-8")


def first_cells(header: str) -> set[str]:
    """Return what stands in backticks in the first column of the table with this header."""
    table = PAGE[PAGE.index(header) :].partition("\n\n")[0]
    return {word for line in table.splitlines()[2:] for word in re.findall(r"`([^`]+)`", line.split("|")[1])}


def test_every_event_is_on_the_page() -> None:
    assert first_cells("| event |") == set(Step)


def test_every_mode_is_on_the_page() -> None:
    assert first_cells("| mode |") == set(Busy)
