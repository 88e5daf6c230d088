"""Reading sessions: pages of rows and pages of headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from loguru import logger

from gateway.domain.errors import Refused
from gateway.domain.message import Mark, Message
from gateway.domain.session import Session
from gateway.ports.sessions import SessionPage, SessionQuery
from gateway.store import rows
from gateway.store.codec import to_micros
from gateway.store.database import Transaction
from gateway.store.headers import COLUMNS, decode_columns

_ROWS = f"SELECT {', '.join(rows.COLUMNS)} FROM messages WHERE session_id = ?"
_ABOVE = f"{_ROWS} AND seq > ? ORDER BY seq LIMIT ?"
_BELOW = f"{_ROWS} AND seq < ? ORDER BY seq DESC LIMIT ?"
_SEQ = rows.COLUMNS.index("seq")


def page(tx: Transaction, session_id: str, *, before: int | None, after: int | None, limit: int) -> Sequence[Message]:
    """Return rows in order of seq, marks attached."""
    check_limit(limit, at_least=0)
    if after is not None:
        found = tx.values(_ABOVE, session_id, after, limit)
    else:
        found = tx.values(_BELOW, session_id, before if before is not None else 1 << 62, limit)[::-1]
    if not found:
        return ()
    hidden = marks(tx, session_id, found[0][_SEQ], found[-1][_SEQ])
    if not hidden:
        return [rows.decode_values(values) for values in found]
    return [rows.decode_values(values, hidden.get(values[_SEQ], frozenset())) for values in found]


def sessions(tx: Transaction, query: SessionQuery) -> SessionPage:
    """Return one page of headers, pinned first, then newest first."""
    check_limit(query.limit)
    where, values = _conditions(query)
    found = tx.values(
        f"SELECT {', '.join(COLUMNS)} FROM sessions WHERE {' AND '.join(where)} "
        "ORDER BY pinned DESC, updated_at DESC, id LIMIT ?",
        *values,
        query.limit + 1,
    )
    shown = [header for row in found[: query.limit] if (header := readable(row)) is not None]
    return SessionPage(
        sessions=shown, next_cursor=_cursor(found[query.limit - 1]) if len(found) > query.limit else None
    )


def check_limit(limit: int, at_least: int = 1) -> None:
    """Raise `Refused` for a limit that would be taken for none."""
    if limit < at_least:
        raise Refused(f"expected a limit of at least {at_least}, got {limit}")


def readable(row: Sequence[Any]) -> Session | None:
    """Return the header of a row of `COLUMNS`, or None for one that is damaged beyond reading."""
    try:
        return decode_columns(row)
    except (TypeError, ValueError):
        # One damaged header must not hide all others.
        logger.bind(session_id=row[0]).warning("a session whose header cannot be read is left out of a list")
        return None


def marks(tx: Transaction, session_id: str, first: int, last: int) -> Mapping[int, frozenset[Mark]]:
    """Return the marks of the rows from seq `first` to `last` that have any."""
    found = tx.all(
        "SELECT seq, mark FROM message_marks WHERE session_id = ? AND seq BETWEEN ? AND ?", session_id, first, last
    )
    by_seq: dict[int, frozenset[Mark]] = {}
    for row in found:
        # A mark that this release does not know hides its row all the same.
        mark = Mark(row["mark"]) if row["mark"] in list(Mark) else Mark.DELETED
        by_seq[row["seq"]] = by_seq.get(row["seq"], frozenset()) | {mark}
    return by_seq


def _conditions(query: SessionQuery) -> tuple[list[str], list[Any]]:
    where, values = ["deleted_at IS NULL"], []
    equal = {"channel": query.channel, "origin_kind": query.origin_kind, "workspace": query.workspace}
    flags = {"pinned": query.pinned, "archived": query.archived}
    for name, wanted in {**equal, **{k: None if v is None else int(v) for k, v in flags.items()}}.items():
        if wanted is not None:
            where.append(f"{name} = ?")
            values.append(wanted)
    if query.closed is not None:
        where.append("closed_at IS NOT NULL" if query.closed else "closed_at IS NULL")
    if query.since is not None:
        where.append("updated_at >= ?")
        values.append(to_micros(query.since))
    if query.cursor is not None:
        pinned, updated_at, id = _read_cursor(query.cursor)
        # The first condition is a place in the index; the second leaves out what else is at that place.
        where.append("(pinned, updated_at) <= (?, ?) AND NOT (pinned = ? AND updated_at = ? AND id <= ?)")
        values += [pinned, updated_at, pinned, updated_at, id]
    return where, values


def _cursor(row: Sequence[Any]) -> str:
    id, pinned, updated_at = (row[COLUMNS.index(name)] for name in ("id", "pinned", "updated_at"))
    return f"{pinned}.{updated_at}.{id}"


def _read_cursor(text: str) -> tuple[int, int, str]:
    pinned, _, rest = text.partition(".")
    updated_at, _, id = rest.partition(".")
    if not (pinned in ("0", "1") and updated_at.isdecimal() and len(updated_at) < 19 and id):
        raise Refused(f"expected the next_cursor of a page before, got {text!r}")
    return int(pinned), int(updated_at), id
