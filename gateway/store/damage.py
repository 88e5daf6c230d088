"""Telling of damage: one warning for each record, however often it is read."""

from __future__ import annotations

from functools import lru_cache

from loguru import logger

TOLD_KEPT = 4096
"""How many damaged records are remembered as told; with more of them, some are told again."""


@lru_cache(maxsize=TOLD_KEPT)
def tell(what: str, where: str) -> None:
    """Warn that a stored value cannot be read, once; what it is read as instead is the reader's business.

    The value itself stays where it is; before a new one takes its place, the store copies it to `set_aside`.
    """
    logger.bind(record=where).warning(f"a stored {what} is damaged; the rest is read without it, and it is kept")
