"""Giving rows whose session's header was lost a header again, so that they can be read, and what waits is answered."""

from __future__ import annotations

import sqlite3

from gateway.domain.keys import SessionKey
from gateway.store.codec import INBOUND, parsed_json

RECOVERED = "recovered"
"""The channel of sessions of which only rows are left."""

_OF_ROWS = """
INSERT INTO sessions (id, key, channel, created_at, updated_at, closed_at)
SELECT session_id, ? || ':' || session_id, ?, min(created_at), max(created_at), max(created_at) FROM messages
WHERE session_id NOT IN (SELECT id FROM sessions) GROUP BY session_id
"""
_WAITING = "SELECT * FROM inbox WHERE state = 'pending' AND session_id NOT IN (SELECT id FROM sessions)"
_OPEN = "SELECT id FROM sessions WHERE key = ? AND closed_at IS NULL AND deleted_at IS NULL"
_INSERT = "INSERT INTO sessions (id, key, channel, created_at, updated_at) VALUES (?, ?, ?, ?, ?)"


def adopt_orphans(connection: sqlite3.Connection) -> None:
    """Make headers for rows without one, and bring pending events to the open session of their chat."""
    for row in connection.execute(_WAITING).fetchall():
        event = parsed_json(INBOUND, row["body"])
        if event is not None:
            session_id = _session_for(connection, event.key, row)
            connection.execute("UPDATE inbox SET session_id = ? WHERE arrival = ?", (session_id, row["arrival"]))
    connection.execute(_OF_ROWS, (RECOVERED, RECOVERED))


def _session_for(connection: sqlite3.Connection, key: SessionKey, row: sqlite3.Row) -> str:
    found = connection.execute(_OPEN, (str(key),)).fetchone()
    if found is None:
        moment = row["accepted_at"]
        connection.execute(_INSERT, (row["session_id"], str(key), key.channel, moment, moment))
        return str(row["session_id"])
    return str(found["id"])
