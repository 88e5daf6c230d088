"""What has been tried in one turn to make its requests fit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Effort:
    """Remembered for the turn, so that nothing that failed is tried again."""

    may_think: bool = True
    may_ask: bool = True
    may_trim: bool = True
    """Whether the oldest part is left out where no summary can be had; never because somebody asked for a summary."""
    has_no_summariser: bool = False
    has_nothing_to_go: bool = False
    refusals: int = 0
    refused: int | None = None
    """Tokens of the smallest history a provider found too large."""
    most: int | None = None
    """Tokens of history that are sent at most from now on, once a provider has refused more."""
