"""Keeping the full-text index of rows: once a commit, whatever the commit holds.

The index writes out what it has at each savepoint and at each trigger, a new segment every time, so a trigger on insert
made it the largest cost of appending. Rows are indexed in the order of their ids; what lies above the highest that the
index knows is new.

What is put into the index and taken out of it is what the views of the schema say, never a row's own text.
"""

from __future__ import annotations

import sqlite3

from loguru import logger

_IS_BEHIND = """
SELECT (SELECT max(id) FROM messages) > coalesce((SELECT max(id) FROM messages_fts_docsize), 0)
"""
_CATCH_UP = """
INSERT INTO messages_fts (rowid, content)
SELECT id, content FROM searchable_messages
WHERE id > coalesce((SELECT max(id) FROM messages_fts_docsize), 0)
"""


def index_new_rows(connection: sqlite3.Connection) -> None:
    """Index the rows that were added since; called in the transaction that added them, before its commit."""
    try:
        (is_behind,) = connection.execute(_IS_BEHIND).fetchone()
        if is_behind:
            connection.execute(_CATCH_UP)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        # The index is made of the rows and can be made again; its damage must not keep a message from being kept.
        logger.error("the full-text index is damaged; rows are kept, and search does not find the new ones")
