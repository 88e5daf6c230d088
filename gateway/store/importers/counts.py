"""Numbers of things, in words."""

from __future__ import annotations


def many(count: int, one: str, more: str = "") -> str:
    """Return a number with the word for what is counted, as `1 row` and `2 rows`; `more` is the word for several."""
    return f"{count} {one if count == 1 else more or f'{one}s'}"
