"""Session headers to and from their columns, and the statements on them that other modules need too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.text import whole
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import NewSession
from gateway.store import damage
from gateway.store.codec import ORIGIN, dump, from_json, from_micros, parsed_json, to_json, to_micros
from gateway.store.database import Row, Transaction

IdMaker = Callable[[], str]

_FIELD_TYPES: Mapping[str, type] = {
    "extra_roots": Sequence, "grants": Mapping, "compaction": Mapping, "metadata": Mapping, "pinned": bool,
    "archived": bool, "consolidated_through": int, "replay_from": int,
}  # fmt: skip
_SPOKEN = {str: "a text", bool: "true or false", int: "a whole number", Mapping: "an object", Sequence: "a list"}

DECODED_KEPT = 16_384
"""Keys and origins that are kept decoded: they never change, and a list that is looked at again has them all again."""

COLUMNS = (
    "id", "key", "workspace", "agent", "model", "mode", "title", "title_source", "preview", "message_count",
    "created_at", "updated_at", "closed_at", "extra_roots", "grants", "pinned", "archived", "origin", "parent_id",
    "consolidated_through", "replay_from", "revision", "compaction", "metadata",
)  # fmt: skip
"""The columns of a header, in the order `decode_columns` takes them."""

_OBJECTS = frozenset({"grants", "compaction", "metadata"})
_TITLE_SOURCES = {source.value: source for source in TitleSource}

_INSERT = """
INSERT INTO sessions (id, key, channel, workspace, agent, model, mode, origin, origin_kind, parent_id, metadata,
                      created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) WHERE closed_at IS NULL AND deleted_at IS NULL DO NOTHING
"""


def open_session(tx: Transaction, key: SessionKey, new: NewSession, make_id: IdMaker, now: datetime) -> Row:
    """Return the row of the open session of `key`, made from `new` if there is none."""
    if (row := find_open(tx, key)) is not None:
        return row
    _insert(tx, key, new, make_id(), to_micros(now))
    row = find_open(tx, key)
    assert row is not None
    return row


def _insert(tx: Transaction, key: SessionKey, new: NewSession, id: str, moment: int) -> None:
    origin = new.origin
    tx.execute(
        _INSERT,
        id,
        str(key),
        key.channel,
        new.workspace,
        new.agent,
        new.model,
        new.mode,
        dump(ORIGIN, origin) if origin else None,
        origin.kind if origin else None,
        new.parent_id,
        to_json(dict(new.metadata)),
        moment,
        moment,
    )


def find_open(tx: Transaction, key: SessionKey) -> Row | None:
    """Return the row of the open session of `key`, or None."""
    return tx.one("SELECT * FROM sessions WHERE key = ? AND closed_at IS NULL AND deleted_at IS NULL", str(key))


def header_row(tx: Transaction, session_id: str) -> Row:
    """Return the row of a session that is not deleted; raise `NotFound`."""
    row = tx.one("SELECT * FROM sessions WHERE id = ? AND deleted_at IS NULL", session_id)
    if row is None:
        raise NotFound(f"no session has the id {session_id!r}")
    return row


def decode_header(row: Row) -> Session:
    """Return the header a row holds; a damaged JSON column reads as empty."""
    return decode_columns([row[name] for name in COLUMNS])


def decode_columns(values: Sequence[Any]) -> Session:
    """Return the header that the values of `COLUMNS` hold; what a list does ten thousand times."""
    (
        id, key, workspace, agent, model, mode, title, title_source, preview, message_count, created_at, updated_at,
        closed_at, extra_roots, grants, pinned, archived, origin, parent_id, consolidated_through, replay_from,
        revision, compaction, metadata,
    ) = values  # fmt: skip
    workspace, agent, model, mode, title, preview = _texts(id, workspace, agent, model, mode, title, preview)
    return Session(
        id=id,
        key=_key(key),
        created_at=from_micros(created_at, id),
        updated_at=from_micros(updated_at, id),
        workspace=workspace,
        agent=agent,
        model=model,
        mode=mode,
        title=title,
        title_source=_TITLE_SOURCES.get(title_source, TitleSource.NONE),
        preview=preview,
        message_count=message_count,
        closed_at=None if closed_at is None else from_micros(closed_at, id),
        # Most structures are empty, and parsing them would be most of what a list costs.
        extra_roots=() if extra_roots == "[]" else tuple(from_json(extra_roots, [], "extra_roots", id)),
        grants={} if grants == "{}" else from_json(grants, {}, "grants", id),
        pinned=pinned != 0,
        archived=archived != 0,
        origin=None if origin is None else _origin(origin),
        parent_id=None if parent_id is None else _texts(id, parent_id)[0],
        # An offset that is none reads as the beginning: too much of a history is sent rather than too little.
        consolidated_through=consolidated_through if isinstance(consolidated_through, int) else _no_offset(id),
        replay_from=replay_from if isinstance(replay_from, int) else _no_offset(id),
        revision=revision if isinstance(revision, int) else 0,
        compaction={} if compaction == "{}" else from_json(compaction, {}, "compaction", id),
        metadata={} if metadata == "{}" else from_json(metadata, {}, "metadata", id),
    )


def _texts(id: str, *values: Any) -> Sequence[str]:
    """Return what stands in columns of text, of which damage may have made something else."""
    if set(map(type, values)) == {str}:
        return values
    return [value if isinstance(value, str) else _mended(value, id) for value in values]


def _mended(value: Any, id: str) -> str:
    """Return what stands in a column of text and is none, as text: bytes that damage made of it, or a number."""
    damage.tell("text", id)
    return whole(value.decode("utf-8", "replace")) if isinstance(value, bytes) else "" if value is None else str(value)


def _no_offset(id: str) -> int:
    damage.tell("offset", id)
    return 0


@lru_cache(maxsize=DECODED_KEPT)
def _origin(text: str) -> Origin | None:
    return parsed_json(ORIGIN, text)


@lru_cache(maxsize=DECODED_KEPT)
def _key(text: str) -> SessionKey:
    return SessionKey.parse(text) if "%" in text else SessionKey(*text.split(":"))


def encode_field(name: str, value: Any) -> Any:
    """Return a header field as its column holds it."""
    expected: Any = _FIELD_TYPES.get(name, str)
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise Refused(f"expected {name} as {_SPOKEN[expected]}, got {type(value).__name__}")
    if name == "extra_roots":
        return to_json([dict(root) for root in value])
    if name in _OBJECTS:
        return to_json(dict(value))
    return whole(value) if isinstance(value, str) else int(value)
