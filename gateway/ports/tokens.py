"""Counting tokens, passed in."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    """Counts the tokens of a text, offline. Safe to call from any thread; never raises for any text."""

    def __call__(self, text: str) -> int:
        """Return the number of tokens in `text`."""
        ...
