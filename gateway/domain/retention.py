"""Which rows of a session stay live when it is shortened: the newest, from a place where a history may begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.message import Message, Role


@dataclass(frozen=True, slots=True)
class Retention:
    """What to keep and what to drop, in order; `already_consolidated` counts dropped rows that a summary covers."""

    kept: Sequence[Message]
    dropped: Sequence[Message]
    already_consolidated: int


def recent_legal_suffix(
    rows: Sequence[Message], most: int, *, consolidated_through: int, extend_to_user: bool = False
) -> Retention:
    """Keep the newest `most` rows, beginning at a user row and with no result parted from its call.

    Where no user row is among them, `extend_to_user` keeps more rows, back to one; without it, the latest user row and
    what followed it are kept, `most` rows in all, and newer ones are dropped.
    """
    kept = _window(rows, most, extend_to_user) if most > 0 else []
    kept = _without_orphans(kept)
    seqs = {row.seq for row in kept}
    dropped = [row for row in rows if row.seq not in seqs]
    return Retention(kept, dropped, sum(row.seq <= consolidated_through for row in dropped))


def _window(rows: Sequence[Message], most: int, extend_to_user: bool) -> Sequence[Message]:
    if len(rows) <= most:
        return rows
    start = len(rows) - most
    users = [place for place, row in enumerate(rows) if row.role is Role.USER]
    inside = next((place for place in users if place >= start), None)
    if extend_to_user:
        before = max((place for place in users if place <= start), default=None)
        start = before if before is not None else inside if inside is not None else start
        return rows[start:]
    if inside is not None:
        return rows[inside:]
    return rows[users[-1] : users[-1] + most] if users else rows[start:]


def _without_orphans(rows: Sequence[Message]) -> Sequence[Message]:
    called: set[str] = set()
    kept = []
    for row in rows:
        called |= {call.id for call in row.tool_calls}
        if row.role is not Role.TOOL or row.tool_call_id in called:
            kept.append(row)
    return kept
