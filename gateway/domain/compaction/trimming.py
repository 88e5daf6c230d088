"""The state after a compaction: with the summary a model made, or, where none can be had, without the oldest rows."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.compaction.boundary import Place, Places, places_in
from gateway.domain.compaction.extraction import extracted
from gateway.domain.compaction.state import CompactionState
from gateway.domain.message import Message

TRIM_SHARE = 0.10
FEWEST_ROWS = 3
"""With fewer visible rows nothing is trimmed: what is left is the newest exchange."""
TRIM_NOTE = "(Older turns after this were left out without a summary.)"


def after_summary(
    before: CompactionState | None,
    rows: Sequence[Message],
    boundary: int,
    summary: str,
    *,
    created_at: str = "",
    model_used: str = "",
) -> CompactionState:
    """Return the state once the rows up to the boundary (a seq) are summed up, the earlier summary folded in."""
    found = extracted(before, [row for row in rows if row.seq < boundary])
    return CompactionState(
        summary_text=summary,
        working_state=found.working_state,
        user_messages=found.user_messages,
        user_messages_dropped=found.dropped,
        created_at=created_at,
        model_used=model_used,
    )


def trimmed(
    before: CompactionState | None, rows: Sequence[Message], target: int | None = None, *, created_at: str = ""
) -> tuple[CompactionState, int] | None:
    """Return the state without the oldest tenth of the rows, by tokens, and the seq that the tail begins at.

    A whole turn goes at least, and as much more as lets the tail fit `target`, where one is given. The earlier summary
    stays. None means that nothing can be dropped, and that trying again would change nothing.
    """
    places = places_in(rows)
    chosen = _chosen(places, target) if places.rows >= FEWEST_ROWS else None
    if chosen is None:
        return None
    dropped = extracted(before, rows[: chosen.index])
    state = CompactionState(
        summary_text=_with_note(before.summary_text if before else ""),
        working_state=dropped.working_state,
        user_messages=dropped.user_messages,
        user_messages_dropped=dropped.dropped,
        created_at=created_at,
        trimmed=True,
    )
    return state, chosen.seq


def _chosen(places: Places, target: int | None) -> Place | None:
    """Return the first place after what has to go; where there is none, the last that drops anything."""
    least = places.tokens * TRIM_SHARE
    if target is not None:
        least = max(least, places.tokens - target)
    possible = [place for place in places.legal if place.rows_before]
    enough = [place for place in possible if place.tokens_before >= least]
    turn = next((place.index for place in possible if place.is_user), 0)
    whole_turns = (place for place in enough if place.index >= turn)
    return next(whole_turns, None) or (possible[-1] if possible else None)


def _with_note(summary: str) -> str:
    if TRIM_NOTE in summary:
        return summary
    return f"{summary.rstrip()}\n\n{TRIM_NOTE}".strip()
