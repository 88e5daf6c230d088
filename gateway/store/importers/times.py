"""Times as other programs write them: ISO texts, with a zone or without."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any


def moment(text: Any, zone: tzinfo = UTC) -> datetime | None:
    """Return the moment in UTC, a text without a zone read in `zone`; None for what is no time."""
    if not isinstance(text, str):
        return None
    try:
        read = datetime.fromisoformat(text.strip())
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
