"""A session as nanobot's JSON lines, such as nanobot reads itself, and what it could not take along.

What nanobot would send to a model although we would not (notices, hidden rows) is left out; so is a tool's result
without its call, at which nanobot would forget everything before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from gateway.domain.compaction import CompactionState
from gateway.domain.message import Kind, MediaRef, Message, Role
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import SessionCopy
from gateway.store.codec import to_json
from gateway.store.nanobot.keys import nanobot_key
from gateway.store.nanobot.losses import Loss, losses
from gateway.store.nanobot.names import LAST_SUMMARY, METADATA, SUFFIX, UNREAD, storage_name
from gateway.store.nanobot.written_rows import naive, stored_row

_NOT_FOR_MODELS = frozenset({Kind.NOTICE, Kind.COMPACTED, Kind.INTERRUPTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NanobotFile:
    """A file for nanobot's directory of sessions; `lines` have their line ends, `losses` are for a report."""

    name: str
    lines: Sequence[str]
    losses: Mapping[Loss, int]


def file_name(session: Session, channels: Mapping[str, str]) -> str:
    """Return the name of the file that nanobot keeps the session in."""
    return f"{storage_name(nanobot_key(session.key, channels))}{SUFFIX}"


def nanobot_file(
    copy: SessionCopy,
    *,
    zone: tzinfo,
    path_of: Callable[[MediaRef], str | None],
    channels: Mapping[str, str] = {},
) -> NanobotFile:
    """Return the session as nanobot keeps it.

    nanobot writes local times without a zone: those of `zone`. `path_of` gives the path that nanobot has for a file, or
    None where it has none.
    `channels` renames channels, from our name to nanobot's.
    """
    key = nanobot_key(copy.session.key, channels)
    rows = _kept(copy.rows)
    done = sum(row.seq <= copy.session.consolidated_through for row in rows)
    head = _head(copy.session, key, zone) | {"last_consolidated": done}
    return NanobotFile(
        name=file_name(copy.session, channels),
        lines=[to_json(line) + "\n" for line in (head, *(stored_row(row, zone, path_of) for row in rows))],
        losses=losses(copy, rows, path_of),
    )


def _head(session: Session, key: str, zone: tzinfo) -> dict[str, Any]:
    metadata = _metadata(session, zone)
    # What an import found in the first row besides what is known goes back to where it was.
    odd = metadata.pop(UNREAD, None)
    return {
        "_type": METADATA,
        **(odd if isinstance(odd, Mapping) else {}),
        "key": key,
        "created_at": naive(session.created_at, zone),
        "updated_at": naive(session.updated_at, zone),
        METADATA: metadata,
    }


def _metadata(session: Session, zone: tzinfo) -> dict[str, Any]:
    """Return nanobot's free facts: ours, the title if it is more than a first line, and the summary."""
    metadata = {name: value for name, value in session.metadata.items() if name != LAST_SUMMARY}
    if session.title_source > TitleSource.FIRST_LINE:
        metadata |= {"title": session.title, "title_user_edited": session.title_edited}
    if summary := _summary(session, zone):
        metadata[LAST_SUMMARY] = summary
    return metadata


def _summary(session: Session, zone: tzinfo) -> Mapping[str, Any] | None:
    """Return the summary as nanobot keeps it; one that came from nanobot stays as it was, unless it is out of date."""
    state = CompactionState.read(session.compaction)
    if state is None or not state.summary_text:
        return None
    stored = session.metadata.get(LAST_SUMMARY)
    if isinstance(stored, Mapping) and stored.get("text") == state.summary_text:
        return stored
    active = naive(_moment(state.created_at) or session.updated_at, zone)
    return {"text": state.summary_text, "last_active": active}


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _kept(rows: Sequence[Message]) -> Sequence[Message]:
    """Return the rows that nanobot may send to a model, without results of calls that are not among them."""
    kept: list[Message] = []
    called: set[str] = set()
    for row in rows:
        if row.marks or row.kind in _NOT_FOR_MODELS:
            continue
        if row.role is Role.TOOL and row.tool_call_id and row.tool_call_id not in called:
            continue
        if row.role is Role.ASSISTANT:
            called.update(call.id for call in row.tool_calls)
        kept.append(row)
    return kept
