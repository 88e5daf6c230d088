"""The header of an openworker session, from the columns of its index; columns that a version lacks are empty."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from gateway.domain.compaction import CompactionState
from gateway.domain.keys import SessionKey
from gateway.domain.message import Message
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource, edited_title
from gateway.ports.moving import imported_id
from gateway.store.openworker.index import Row
from gateway.store.openworker.transcripts import Transcript
from gateway.store.openworker.values import T, flag, moment, structure, text

SOURCE = "openworker"

_OUR_ID = re.compile(r"[0-9a-f]{32}")
_INTERNAL = ("__task__", "__run__")
_PLACEHOLDER = "New session"
"""The title openworker shows for a session in which nobody has written yet."""
_READ = frozenset(
    {
        "rowid", "has_messages", "session_id", "workspace", "model", "mode", "title", "agent", "n_msgs", "extra_roots",
        "pinned", "archived", "origin", "origin_label", "auto_title", "renamed", "updated_at", "grants", "compaction",
        "team",
    }
)  # fmt: skip


def spelled(session_id: str) -> str:
    """Return an id as text that can be stored and shown; no two ids become one."""
    if session_id.isprintable() and "\\" not in session_id:
        return session_id
    return session_id.encode("unicode_escape").decode()


@dataclass(slots=True)
class Columns:
    """The columns of one session, and what was wrong with those that were read."""

    row: Row
    repairs: list[str] = field(default_factory=list)
    odd: dict[str, Any] = field(default_factory=dict)

    def structure(self, name: str, kind: type[T]) -> T:
        """Return a column of JSON, empty if it is damaged: what stands there is then kept as text, in `odd`."""
        value = self.row.get(name)
        found = structure(value, kind)
        if found is None:
            self.repairs.append(f"the column {name} is damaged and was set aside")
            self.odd[name] = text(value)
            return kind()
        return found

    def roots(self) -> tuple[dict[str, Any], ...]:
        """Return the folders beyond the workspace."""
        listed = self.structure("extra_roots", list)
        if odd := [root for root in listed if not isinstance(root, dict)]:
            self.repairs.append("entries of extra_roots that are no folders were set aside")
            self.odd["extra_roots"] = odd
        return tuple(root for root in listed if isinstance(root, dict))


def updated_at(row: Row) -> datetime | None:
    """Return when the session was last used, as the index has it."""
    value = row.get("updated_at")
    return moment(text(value) if isinstance(value, bytes) else value)


def read_header(
    session_id: str, columns: Columns, rows: Sequence[Message], transcript: Transcript, *, used: datetime, channel: str
) -> Session:
    """Return the header; `used` is when the session was last used."""
    row = columns.row
    name = spelled(session_id)
    id = session_id if _OUR_ID.fullmatch(session_id) else imported_id(SOURCE, name)
    title, title_source = _title(row, is_empty=not rows)
    compaction, through = _compaction(columns, transcript)
    return Session(
        id=id,
        key=SessionKey(channel, name),
        created_at=next((row.created_at for row in rows if row.created_at is not None), used),
        updated_at=used,
        workspace=text(row.get("workspace")),
        agent=text(row.get("agent")),
        model=text(row.get("model")),
        mode=text(row.get("mode")),
        title=title,
        title_source=title_source,
        message_count=len(rows),
        extra_roots=columns.roots(),
        grants=columns.structure("grants", dict),
        pinned=flag(row.get("pinned")),
        archived=flag(row.get("archived")) or session_id.startswith(_INTERNAL),
        origin=_origin(row),
        consolidated_through=through,
        compaction=compaction,
        metadata=_metadata(columns, {} if id == session_id else {"session_id": name}),
    )


def _title(row: Row, *, is_empty: bool) -> tuple[str, TitleSource]:
    own, generated = text(row.get("title")), text(row.get("auto_title"))
    if flag(row.get("renamed")) and own.strip():
        return edited_title(own), TitleSource.EDITED
    if generated.strip():
        return edited_title(generated), TitleSource.GENERATED
    if own.strip() and own.strip() != _PLACEHOLDER:
        # Where the rows are lost, their first line is not to be had again.
        return edited_title(own), TitleSource.GENERATED if is_empty else TitleSource.FIRST_LINE
    return "", TitleSource.NONE


def _origin(row: Row) -> Origin | None:
    kind = text(row.get("origin"))
    return Origin(kind=kind, label=text(row.get("origin_label"))) if kind else None


def _metadata(columns: Columns, more: dict[str, Any]) -> dict[str, Any]:
    team = columns.structure("team", dict)
    unread = {name: text(value) for name, value in columns.row.items() if name not in _READ and value is not None}
    others = {**more, **unread, **columns.odd}
    return {**({"team": team} if team else {}), **({SOURCE: others} if others else {})}


def _compaction(columns: Columns, transcript: Transcript) -> tuple[dict[str, Any], int]:
    """Return the state, and the seq of the last row it stands for."""
    stored = columns.structure("compaction", dict)
    boundary = stored.get("boundary_index")
    # A boundary outside of the rows has no effect in openworker either.
    if isinstance(boundary, int) and not isinstance(boundary, bool) and 0 < boundary < transcript.length:
        state = CompactionState.read({**stored, **_ours(stored)})
        return state.as_stored() if state else {}, bisect_left(transcript.places, boundary)
    if stored:
        columns.repairs.append("the compaction names no row of the session and was set aside")
        columns.odd["compaction"] = stored
    return {}, 0


def _ours(stored: dict[str, Any]) -> dict[str, Any]:
    """Return what we write differently: the facts by headings, the time as text."""
    facts, created = stored.get("working_state"), stored.get("created_at")
    lines = [line for line in facts.splitlines() if line.strip()] if isinstance(facts, str) else []
    at = moment(created)
    return {
        "working_state": {"earlier": lines} if lines else {},
        "created_at": at.isoformat() if at and not isinstance(created, str) else created,
    }
