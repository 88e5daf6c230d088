"""Single values of openworker's store as ours: texts, times, flags, JSON in columns. Nothing here raises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

from gateway.domain.text import whole
from gateway.store.importers import times
from gateway.store.importers.lines import read_lines

T = TypeVar("T", dict, list)  # type: ignore[type-arg]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def text(value: object) -> str:
    """Return a column as text that can be stored; of what is no text, how it is written, and nothing for NULL."""
    if isinstance(value, bytes):
        return whole(value.decode("utf-8", "replace"))
    return "" if value is None else whole(str(value))


def flag(value: object) -> bool:
    """Return whether a column of 0 and 1 is set."""
    return isinstance(value, int | float) and value != 0


def moment(value: object) -> datetime | None:
    """Return seconds since 1970 or an ISO time as a moment in UTC, which a time without a zone is in; None for junk."""
    if isinstance(value, bool):
        return None
    try:
        return _EPOCH + timedelta(seconds=value) if isinstance(value, int | float) else times.moment(value)
    except (ValueError, OverflowError):
        return None


def structure(value: object, kind: type[T]) -> T | None:
    """Return the JSON in a column; empty for NULL, None for what is no JSON, or of another kind."""
    if value is None or value == b"":
        return kind()
    if not isinstance(value, bytes):
        return None
    # As the only value of an object in one line, any value is read with the care that a row is read with.
    found = read_lines(b'{"value":' + value.replace(b"\n", b" ") + b"}").objects
    if len(found) != 1 or set(found[0].value) != {"value"}:
        return None
    inner = found[0].value["value"]
    return inner if isinstance(inner, kind) else kind() if inner is None else None
