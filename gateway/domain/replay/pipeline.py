"""The pipeline from stored rows to what is sent: window, legality, decoration, budget, legality again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.compaction.fitting import fitted
from gateway.domain.compaction.state import CompactionState, block
from gateway.domain.legality import LeftOut, Legal, begun, is_paired, joined, paired
from gateway.domain.message import Kind, Message, Role
from gateway.domain.replay.budget import OPENING_TOKENS, SHARE_AFTER_CUT, Costs, Fit
from gateway.domain.replay.oversize import Count, shortened
from gateway.domain.replay.timeline import Reading, Timeline, cost
from gateway.domain.replay.window import recent_start

LARGEST_SHARE = 0.5
"""How much of the budget one row may take before its middle is cut."""
OPENING = "(The conversation goes on from here; what was said before is left out.)"
"""What stands before words of the bot that a history begins with: providers want a person to speak first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a replay must keep to.

    `budget` is in tokens. `largest` is the most tokens of one row, half of the budget if it is not said; it should stay
    the same from turn to turn also where the budget does not, since a row that is cut another way is no longer cached.
    `begin` is the seq that it begins at as long as the budget allows, 0 for the first row.
    `provider` is whose thinking may go along, empty for nobody's. `most_messages` bounds the rows; with
    `extend_to_user` it goes back to a user row where there is none among them.
    """

    budget: int
    largest: int | None = None
    begin: int = 0
    provider: str = ""
    most_messages: int | None = None
    extend_to_user: bool = False
    runtime_context: bool = True

    def reading(self, count: Count) -> Reading:
        """Return how rows are read under these terms."""
        return Reading(
            count=count,
            largest=self.largest or max(int(self.budget * LARGEST_SHARE), 1),
            provider=self.provider,
            runtime_context=self.runtime_context,
        )


@dataclass(frozen=True, slots=True)
class Replay:
    """A history to send, its tokens, every row left out with its reason, and the seq it begins at.

    `whole` is what it would take if nothing had been left out for the budget's sake.
    """

    messages: Sequence[Message]
    tokens: int
    left_out: Sequence[LeftOut]
    begin: int
    whole: int = 0


def build(rows: Sequence[Message], terms: Terms, count: Count, *, summary: CompactionState | None = None) -> Replay:
    """Return the history of `rows` (oldest first) under the terms, legal for every provider."""
    timeline = Timeline(terms.reading(count))
    timeline.add(rows)
    return replay(timeline, terms, summary=summary)


def replay(timeline: Timeline, terms: Terms, *, summary: CompactionState | None = None) -> Replay:
    """Return what of a timeline is sent under the terms it was read by."""
    count = timeline.reading.count
    head = [] if summary is None else [block(fitted(summary, terms.budget // 2, count), count)]
    budget = max(terms.budget - sum(map(cost, head)), 0)
    messages = timeline.messages
    first = _first(messages, terms)
    fit = Costs(messages, timeline.costs, has_head=bool(head)).fit(first, budget)
    chosen, dropped = _squeezed(_chosen(messages, fit), budget, count)
    legal = Legal(chosen, ()) if is_paired(chosen) else paired(chosen)
    if not head:
        legal = begun(legal.messages)
    sent = [*head, *([] if head else _opening(legal.messages)), *legal.messages]
    return Replay(
        messages=joined(sent),
        tokens=sum(map(cost, sent)),
        left_out=[*timeline.left_out, *_outside(messages, first, fit, terms), *dropped, *legal.left_out],
        whole=sum(map(cost, head)) + sum(timeline.costs[first:]),
        begin=messages[fit.start].seq if 0 < fit.start < len(messages) else min(terms.begin, timeline.through),
    )


def _first(messages: Sequence[Message], terms: Terms) -> int:
    first = 0
    if terms.begin:
        # A result stands at its call, so it may have a later place in the session than what follows it here.
        places = (p for p, one in enumerate(messages) if one.seq >= terms.begin and one.role is not Role.TOOL)
        # A place behind the last row is none, as damage or rows that were moved away leave it.
        first = next(places, 0)
    if terms.most_messages is not None:
        first = _within(messages, first, terms.most_messages, extend_to_user=terms.extend_to_user)
    return first


def _within(messages: Sequence[Message], first: int, most: int, *, extend_to_user: bool) -> int:
    """Return where the newest `most` messages begin; where they are too many, so that a quarter of them is free."""
    if len(messages) - first <= most:
        return first
    return max(first, recent_start(messages, max(int(most * SHARE_AFTER_CUT), 1), extend_to_user=extend_to_user))


def _chosen(messages: Sequence[Message], fit: Fit) -> Sequence[Message]:
    kept = messages[fit.start :]
    return kept if fit.question is None else [messages[fit.question], *kept]


def _squeezed(messages: Sequence[Message], budget: int, count: Count) -> tuple[Sequence[Message], Sequence[LeftOut]]:
    """Shorten a question and its newest round that do not fit; where that is not enough, leave the round out."""
    if not messages or sum(map(cost, messages)) <= budget:
        return messages, ()
    question = shortened(messages[0], budget // 2 if len(messages) > 1 else budget, count)
    rest = list(messages[1:])
    for _ in range(2):
        # Those that are small leave their share to the others.
        room = budget - cost(question)
        small = [row for row in rest if cost(row) <= room // max(len(rest), 1)]
        share = (room - sum(map(cost, small))) // max(len(rest) - len(small), 1)
        rest = [shortened(row, max(share, 1), count) for row in rest]
    if cost(question) + sum(map(cost, rest)) <= budget:
        return [question, *rest], ()
    why = "larger than what is left of the token budget"
    return [shortened(messages[0], budget, count)], [LeftOut(row.seq, why) for row in rest]


def _opening(messages: Sequence[Message]) -> Sequence[Message]:
    if not messages or messages[0].role is Role.USER:
        return ()
    return [Message(role=Role.USER, kind=Kind.NOTICE, content=OPENING, tokens=OPENING_TOKENS)]


def _outside(messages: Sequence[Message], first: int, fit: Fit, terms: Terms) -> Sequence[LeftOut]:
    before = (place for place in range(fit.start) if place != fit.question)
    stable = "before the place where the replay begins"
    older = stable if terms.most_messages is None else f"{stable}, or not among the newest {terms.most_messages}"
    return [LeftOut(messages[p].seq, older if p < first else "over the token budget") for p in before]
