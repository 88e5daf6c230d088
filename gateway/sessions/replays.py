"""What a model is sent of a session, worked out once and then row by row.

Rows never change, so what was made of them is kept for the sessions used last, within a bound, and a new row costs
itself. What does change under them (a mark, rows that went to the attic) counts up the header's `revision`, and then
all is worked out anew. Losing what is kept costs time and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from gateway.domain.compaction.state import CompactionState
from gateway.domain.legality import LeftOut
from gateway.domain.message import Message, Role
from gateway.domain.replay.pipeline import Replay, Terms, replay
from gateway.domain.replay.timeline import Timeline, cost
from gateway.domain.replay.window import is_visible
from gateway.domain.session import Session
from gateway.ports.sessions import Sessions
from gateway.ports.tokens import TokenCounter

PAGE = 1_000
MOST_TOKENS_KEPT = 4_000_000
"""Tokens of rows kept worked out, of all sessions together; the sessions that were used longest ago go first."""
LINES_COUNTED = 4_096
LONGEST_LINE = 200
"""Short lines (who speaks, what came along) come again and again; what they cost is remembered."""
AT_ONCE = 200
"""More rows than that are worked out in a thread, so that other chats are not kept waiting."""


@dataclass(slots=True)
class _Kept:
    under: Hashable
    timeline: Timeline


class Replays:
    """Makes replays. Safe to share between tasks: a timeline is one task's as long as it is being worked on."""

    def __init__(self, sessions: Sessions, count: TokenCounter) -> None:
        self._sessions = sessions
        self._count = _remembering(count)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._tokens = 0

    @property
    def tokens_kept(self) -> int:
        """How many tokens of rows are kept worked out."""
        return self._tokens

    async def replay(self, session_id: str, terms: Terms) -> Replay:
        """Return what is sent, beginning where the last one did if that still fits; where it begins now is stored."""
        session = await self._sessions.get(session_id)
        terms = replace(terms, begin=session.replay_from)
        under = (session.revision, session.consolidated_through, session.replay_from, terms.reading(self._count))
        kept = self._taken(session_id)
        if kept is None or kept.under != under:
            timeline = await self._extended(Timeline(terms.reading(self._count)), await self._read(session, terms))
        else:
            timeline = await self._extended(kept.timeline, await self._after(session_id, kept.timeline.through))
        made = replay(timeline, terms, summary=CompactionState.read(session.compaction))
        if made.begin != terms.begin:
            # The rows before are of no more use: the next replay begins with those that are left.
            await self._sessions.update(session_id, {"replay_from": made.begin})
        else:
            self._keep(session_id, _Kept(under, timeline))
        return made

    async def explain(self, session_id: str, terms: Terms) -> Replay:
        """Return what would be sent, and of every row that would not be, why; nothing is changed or kept."""
        session = await self._sessions.get(session_id)
        rows = await self._after(session_id, 0)
        covered = [
            LeftOut(row.seq, "covered by the summary") for row in rows if row.seq <= session.consolidated_through
        ]
        terms = replace(terms, begin=session.replay_from)
        timeline = Timeline(terms.reading(self._count))
        await self._extended(timeline, rows[len(covered) :])
        made = replay(timeline, terms, summary=CompactionState.read(session.compaction))
        return replace(made, left_out=[*covered, *made.left_out])

    def _taken(self, session_id: str) -> _Kept | None:
        kept = self._kept.pop(session_id, None)
        self._tokens -= kept.timeline.weight if kept else 0
        return kept

    def _keep(self, session_id: str, kept: _Kept) -> None:
        # Another task may have worked on the session meanwhile.
        self._taken(session_id)
        self._kept[session_id] = kept
        self._tokens += kept.timeline.weight
        while self._tokens > MOST_TOKENS_KEPT and len(self._kept) > 1:
            self._taken(next(iter(self._kept)))

    async def _extended(self, timeline: Timeline, rows: Sequence[Message]) -> Timeline:
        if len(rows) > AT_ONCE:
            await asyncio.to_thread(timeline.add, rows)
        else:
            timeline.add(rows)
        return timeline

    async def _read(self, session: Session, terms: Terms) -> Sequence[Message]:
        """Return the rows from where the replay begins, or the newest until they are more than the budget.

        Always back to a question: one turn with a long run of tool rounds can fill a budget by itself.
        """
        begin, floor = session.replay_from, session.consolidated_through
        largest = terms.reading(self._count).largest
        if begin <= floor + 1:
            return await self._backwards(
                session.id, None, floor, lambda rows: _has_question(rows) and _spent(rows, largest) > terms.budget
            )
        rows = await self._after(session.id, begin - 1)
        if _begins_well(rows):
            return rows
        return [*await self._backwards(session.id, begin, floor, _has_question), *rows]

    async def _backwards(
        self, session_id: str, before: int | None, floor: int, is_enough: Callable[[Sequence[Message]], bool]
    ) -> list[Message]:
        """Return rows above `floor` and below `before`, read from the newest until they are enough."""
        rows: list[Message] = []
        while not is_enough(rows):
            page = await self._sessions.page(session_id, before=before, limit=PAGE)
            kept = [row for row in page if row.seq > floor]
            rows = [*kept, *rows]
            if len(kept) < PAGE:
                break
            before = kept[0].seq
        return rows

    async def _after(self, session_id: str, seq: int) -> list[Message]:
        rows: list[Message] = []
        while page := await self._sessions.page(session_id, after=seq, limit=PAGE):
            rows += page
            seq = page[-1].seq
            if len(page) < PAGE:
                break
        return rows


def _has_question(rows: Sequence[Message]) -> bool:
    return any(row.role is Role.USER and is_visible(row) for row in rows)


def _spent(rows: Sequence[Message], largest: int) -> int:
    """Return what rows will take at the most, once one that is too large is cut."""
    return sum(min(cost(row), largest) for row in rows if is_visible(row))


def _begins_well(rows: Sequence[Message]) -> bool:
    """Whether rows begin at a question, or with words right before one, and not inside a turn."""
    return _has_question(rows[:2]) and not rows[0].tool_calls


def _remembering(count: TokenCounter) -> TokenCounter:
    remembered = lru_cache(maxsize=LINES_COUNTED)(count)
    return lambda text: remembered(text) if len(text) <= LONGEST_LINE else count(text)
