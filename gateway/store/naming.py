"""Titles and previews in the header, kept as rows come and go, so that a list reads no rows."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.message import Kind, Message, Role
from gateway.domain.text import whole
from gateway.domain.titles import ROWS_LOOKED_AT, TitleSource, first_line_title, preview
from gateway.store import listing
from gateway.store.database import Row, Transaction

_SPEAKERS = (Role.ASSISTANT, Role.USER)


def name_after(tx: Transaction, session_id: str, header: Row, added: Sequence[Message]) -> None:
    """Set the preview and the first-line title from rows that were just added, if they are wanted still."""
    if header["preview_role"] != Role.USER:
        for role in _SPEAKERS:
            if header["preview_role"] != role and (text := preview(row for row in added if row.role is role)):
                tx.execute("UPDATE sessions SET preview = ?, preview_role = ? WHERE id = ?", text, role, session_id)
    if header["title_source"] == TitleSource.NONE:
        set_title(tx, session_id, _first_line(added), TitleSource.FIRST_LINE)


def _first_line(rows: Sequence[Message]) -> str:
    asked = next((row for row in rows if _is_question(row)), None)
    return first_line_title(asked.text) if asked else ""


def _is_question(row: Message) -> bool:
    return row.role is Role.USER and row.kind is Kind.CHAT and not row.marks and bool(row.text.strip())


def set_title(tx: Transaction, session_id: str, title: str, source: TitleSource) -> bool:
    """Set the title unless it has one of a higher source, or the same first line."""
    title = whole(title)
    if not title:
        return False
    above = source if source is TitleSource.FIRST_LINE else source + 1
    sql = "UPDATE sessions SET title = ?, title_source = ? WHERE id = ? AND title_source < ? AND deleted_at IS NULL"
    return tx.execute(sql, title, source, session_id, above) == 1


def refresh_names(tx: Transaction, session_id: str) -> None:
    """Make what was made of the rows again, after some were hidden or moved: nothing may show what is hidden."""
    tx.execute("UPDATE sessions SET revision = revision + 1 WHERE id = ?", session_id)
    head = listing.page(tx, session_id, before=None, after=0, limit=ROWS_LOOKED_AT)
    text = preview(head)
    if not text and len(head) == ROWS_LOOKED_AT:
        # What they were made of lies further in than is looked, and so was not among the first rows.
        return
    spoken = preview(row for row in head if row.role is Role.USER)
    role = Role.USER if spoken else Role.ASSISTANT if text else ""
    tx.execute("UPDATE sessions SET preview = ?, preview_role = ? WHERE id = ?", text, role, session_id)
    title = whole(_first_line(head))
    source = TitleSource.FIRST_LINE if title else TitleSource.NONE
    sql = "UPDATE sessions SET title = ?, title_source = ? WHERE id = ? AND title_source <= ?"
    tx.execute(sql, title, source, session_id, TitleSource.FIRST_LINE)
