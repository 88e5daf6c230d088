"""The first row of a nanobot file as a header of ours: times, title, summary and how far it was summarised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from gateway.domain.compaction import CompactionState
from gateway.domain.sanitize import without_thinking
from gateway.domain.text import whole
from gateway.domain.titles import TitleSource
from gateway.store.importers.times import moment
from gateway.store.nanobot.names import LAST_SUMMARY, METADATA, UNREAD

_KNOWN = frozenset({"_type", "key", "created_at", "updated_at", "metadata", "last_consolidated", "last_archived"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a metadata row tells. `identity` tells the sessions of one key apart: by when each was made, as it says."""

    key: str = ""
    identity: str = ""
    created_at: datetime
    updated_at: datetime
    title: str = ""
    title_source: TitleSource = TitleSource.NONE
    metadata: Mapping[str, Any]
    compaction: Mapping[str, Any]
    offset: int = 0


def read_header(raw: Mapping[str, Any], *, zone: tzinfo, fallback: datetime) -> Header:
    """Return what a metadata row tells; a field of another shape than it should have counts as missing."""
    stored = raw.get(METADATA)
    metadata: dict[str, Any] = dict(stored) if isinstance(stored, dict) else {}
    compaction = _compaction(metadata.get(LAST_SUMMARY))
    title, source = _take_title(metadata)
    if odd := _odd(raw):
        metadata[UNREAD] = odd
    return Header(
        key=_text(raw.get("key")),
        identity=_text(raw.get("created_at")),
        created_at=moment(raw.get("created_at"), zone) or fallback,
        updated_at=moment(raw.get("updated_at"), zone) or fallback,
        title=title,
        title_source=source,
        metadata=metadata,
        compaction=compaction,
        # Later versions write the same number under another name beside this one, and read that first.
        offset=_offset(raw.get("last_archived", raw.get("last_consolidated"))),
    )


def consolidated_rows(offset: int, rows: Sequence[int], lost: Sequence[int]) -> int:
    """Return how many of the rows that were read are among the first `offset` of those that were written.

    `rows` are the lines of the rows, `lost` those of which something could not be read: each counts as a row, so that
    damage does not move the place up to which the session was summarised.
    """
    places = sorted([*((line, True) for line in rows), *((line, False) for line in lost)], key=lambda place: place[0])
    return sum(is_read for _, is_read in places[:offset]) if offset <= len(places) else 0


def _odd(raw: Mapping[str, Any]) -> dict[str, Any]:
    odd = {name: value for name, value in raw.items() if name not in _KNOWN}
    if not isinstance(raw.get(METADATA, {}), dict | None):
        odd[METADATA] = raw[METADATA]
    return odd


def _take_title(metadata: dict[str, Any]) -> tuple[str, TitleSource]:
    """Return the title and where it is from; what becomes of it no title stays in the metadata."""
    raw = metadata.get("title")
    if not isinstance(raw, str):
        return "", TitleSource.NONE
    is_edited = metadata.get("title_user_edited") is True
    title = whole(raw) if is_edited else whole(without_thinking(raw))
    if not title.strip():
        return "", TitleSource.NONE
    if title == raw:
        del metadata["title"]
    metadata.pop("title_user_edited", None)
    return title, TitleSource.EDITED if is_edited else TitleSource.GENERATED


def _compaction(summary: Any) -> dict[str, Any]:
    if isinstance(summary, str):
        summary = {"text": summary}
    if not (isinstance(summary, Mapping) and _text(summary.get("text")).strip()):
        return {}
    state = CompactionState(summary_text=summary["text"], created_at=_text(summary.get("last_active")))
    return state.as_stored()


def _offset(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
