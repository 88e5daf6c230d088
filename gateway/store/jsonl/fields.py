"""The fields of a session and of its rows as our own JSON lines name them, to and from plain data.

Every field goes by its own name, so that one that is added to a header or a row is carried without a word here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from gateway.domain.errors import InvalidKey
from gateway.domain.keys import SessionKey
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.session import Session
from gateway.store.codec import from_micros, to_micros

_LARGEST = 1 << 62
"""No number of a column is larger; SQLite holds none of more than 64 bits."""


class Unreadable(ValueError):
    """A field of a line does not hold what it should."""


def _adapters(holder: type) -> Mapping[str, TypeAdapter[Any]]:
    hints = get_type_hints(holder)
    return {one.name: TypeAdapter(hints[one.name]) for one in fields(holder)}


_ADAPTERS = {holder: _adapters(holder) for holder in (Session, Message)}
_MOMENT = TypeAdapter(datetime)
_NO_TIME = from_micros(0)


def encoded(value: Session | Message) -> dict[str, Any]:
    """Return the fields of a header or a row as plain data; only those that differ from their defaults."""
    adapters = _ADAPTERS[type(value)]
    return {
        one.name: _plain(held, adapters[one.name])
        for one in fields(value)
        if (held := getattr(value, one.name)) != _default(one)
    }


def _plain(value: Any, adapter: TypeAdapter[Any]) -> Any:
    if isinstance(value, SessionKey):
        return str(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return adapter.dump_python(value, mode="json", exclude_defaults=True)


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def encoded_moment(moment: datetime) -> str:
    """Return a moment as the lines hold it."""
    return _MOMENT.dump_python(moment, mode="json")  # type: ignore[no-any-return]


def decoded_moment(value: Any) -> datetime:
    """Return the moment a line holds, in UTC; raise `Unreadable` for what a store could not keep as one."""
    return _read("moment", value, _MOMENT)  # type: ignore[no-any-return]


def decoded_header(line: Mapping[str, Any], tell: Callable[[str], None]) -> Session:
    """Return the header a line holds, and `tell` each field that had to be left out.

    Raises `Unreadable` where there is no id or no key.
    """
    found = _fields(Session, line, tell)
    if not (found.get("id") and found["id"].isprintable()):
        raise Unreadable(f"expected the id of a session, got {line.get('id')!r:.80}")
    if "key" not in found:
        raise Unreadable(f"expected the key of a session, got {line.get('key')!r:.80}")
    for name, other in (("created_at", "updated_at"), ("updated_at", "created_at")):
        if name not in found:
            tell(f"no {name} that can be read")
            found[name] = found.get(other, _NO_TIME)
    return Session(**found)


def decoded_row(line: Mapping[str, Any], tell: Callable[[str], None]) -> Message:
    """Return the row a line holds, and `tell` each field that had to be left out.

    As when the store reads: an unknown role or kind makes the row a notice, and an unknown mark hides it all the same.
    Raises `Unreadable` where the row has no place.
    """
    found = _fields(Message, line, tell)
    if found.get("seq", 0) < 1:
        raise Unreadable(f"expected the place of a row as its seq, got {line.get('seq')!r:.80}")
    if "role" not in found or ("kind" in line and "kind" not in found):
        found = {"role": Role.SYSTEM, **found, "kind": Kind.NOTICE}
    if "marks" in line and "marks" not in found:
        found["marks"] = frozenset({Mark.DELETED})
    return Message(**found)


def _fields(
    holder: type[Session] | type[Message], line: Mapping[str, Any], tell: Callable[[str], None]
) -> dict[str, Any]:
    found = {}
    for name, adapter in _ADAPTERS[holder].items():
        if name in line:
            try:
                found[name] = _read(name, line[name], adapter)
            except Unreadable as error:
                tell(f"{error}, left out")
    return found


def _read(name: str, value: Any, adapter: TypeAdapter[Any]) -> Any:
    try:
        read = SessionKey.parse(str(value)) if name == "key" else adapter.validate_python(value)
        if isinstance(read, datetime):
            to_micros(read)
            read = read.astimezone(UTC)
    except (ValidationError, InvalidKey, ValueError, OverflowError, RecursionError) as error:
        raise Unreadable(f"no {name} that can be read") from error
    if isinstance(read, int) and abs(read) > _LARGEST:
        raise Unreadable(f"no {name} that can be read")
    return read
