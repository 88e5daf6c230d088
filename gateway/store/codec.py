"""Values in columns: times as microseconds, structures as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import Attachment, MediaRef, Sender
from gateway.domain.origins import Origin
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.domain.text import whole
from gateway.store import damage

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

ATTACHMENTS = TypeAdapter(tuple[Attachment, ...])
INBOUND = TypeAdapter(Inbound)
MEDIA = TypeAdapter(tuple[MediaRef, ...])
ORIGIN = TypeAdapter(Origin)
OUTBOUND = TypeAdapter(Outbound)
PART = TypeAdapter(Part)
REF = TypeAdapter(Ref)
ROUTE = TypeAdapter(Route)
SENDER = TypeAdapter(Sender)


def to_micros(moment: datetime) -> int:
    """Return a moment as stored; raise `ValueError` for one that does not say its zone."""
    if moment.tzinfo is None:
        raise ValueError(f"expected an aware time, got {moment!r}")
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int, where: str = "a record") -> datetime:
    """Return a stored moment, in UTC; what is no moment, as damage makes it, reads as the beginning of time."""
    try:
        return _EPOCH + timedelta(0, 0, micros)
    except (TypeError, OverflowError):
        damage.tell("time", where)
        return _EPOCH


def maybe_from_micros(micros: int | None) -> datetime | None:
    """Return a stored moment, or None where there is none."""
    return None if micros is None else from_micros(micros)


def dump(adapter: TypeAdapter[Any], value: Any) -> str:
    """Return a value as JSON text; only what differs from the defaults is written."""
    return adapter.dump_json(value, exclude_defaults=True).decode()


def parsed(adapter: TypeAdapter[T], value: Any) -> T | None:
    """Return stored data as the value it should be, or None where it is null or damaged."""
    if value is None:
        return None
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def parsed_json(adapter: TypeAdapter[T], text: str | None) -> T | None:
    """Return a stored JSON value, or None where it is null or damaged."""
    if text is None:
        return None
    try:
        return adapter.validate_json(text)
    except ValidationError:
        return None


def to_json(value: Any) -> str:
    """Return plain data as JSON text, with characters as they are."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Refused(f"expected plain data that JSON can hold: {error}") from error
    return whole(text)


def from_json(text: str | None, default: Any, what: str = "structure", where: str = "a record") -> Any:
    """Return stored plain data, or `default` where the column is null, damaged or of another shape than `default`."""
    if text is None:
        return default
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        value = None
    if isinstance(value, type(default)):
        return value
    damage.tell(what, where)
    return default
