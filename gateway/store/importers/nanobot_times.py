"""nanobot's times: ISO texts, mostly without a zone, in the local time of the machine it ran on."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any


def moment(text: Any, zone: tzinfo) -> datetime | None:
    """Return the moment in UTC, a text without a zone read in `zone`; None for what is no time."""
    if not isinstance(text, str):
        return None
    try:
        read = datetime.fromisoformat(text.strip())
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
