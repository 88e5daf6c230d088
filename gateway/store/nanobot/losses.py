"""What of a session nanobot's files cannot hold, summed up for the report of an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.compaction import CompactionState
from gateway.domain.message import Kind, MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.sessions import SessionCopy
from gateway.store.importers.counts import many
from gateway.store.nanobot.names import CLI_APP
from gateway.store.nanobot.written_rows import lost_names

_Count = tuple[int, str, str]


@dataclass(frozen=True, slots=True)
class Loss:
    """A kind of thing that is lost, in words for one of it and for several."""

    one: str
    more: str

    def told(self, count: int) -> str:
        """Return a sentence that says how many were lost."""
        return f"{many(count, self.one, self.more)}."


def losses(copy: SessionCopy, kept: Sequence[Message], path_of: Callable[[MediaRef], str | None]) -> Mapping[Loss, int]:
    """Return how much of each kind is lost; `kept` are the rows that are not."""
    counts = [*_of_header(copy.session), *_left_out(copy, kept), *_of_rows(kept, path_of)]
    return {Loss(one, more): int(count) for count, one, more in counts if count}


def _of_header(session: Session) -> Iterator[_Count]:
    is_replayed_later = session.replay_from > session.consolidated_through + 1
    touches = bool(session.grants or session.extra_roots)
    flags = {"closed": session.closed_at is not None, "pinned": session.pinned, "archived": session.archived}
    for flag, is_set in flags.items():
        rest = f"{flag}, of which nanobot knows nothing"
        yield is_set, f"session is {rest}", f"sessions are {rest}"
    yield any(_profile(session)), *_without("workspace, agent, model or mode")
    yield touches, *_without("what it may touch besides its workspace")
    yield session.origin is not None, *_without("where it came from, but for its key")
    yield session.parent_id is not None, *_without("the session it was made from")
    yield is_replayed_later, *_without("where its replay begins")
    yield _has_facts(session), *_without("what was kept besides the summary of its earlier rows")


def _without(what: str) -> tuple[str, str]:
    return f"session is written without {what}", f"sessions are written without {what}"


def _profile(session: Session) -> Sequence[str]:
    return session.workspace, session.agent, session.model, session.mode


def _has_facts(session: Session) -> bool:
    state = CompactionState.read(session.compaction)
    return state is not None and bool(state.working_state or state.user_messages)


def _left_out(copy: SessionCopy, kept: Sequence[Message]) -> Iterator[_Count]:
    places = {row.seq for row in kept}
    gone = [row for row in copy.rows if row.seq not in places]
    marked = sum(bool(row.marks) for row in gone)
    notes = sum(row.kind in (Kind.NOTICE, Kind.COMPACTED, Kind.INTERRUPTED) for row in gone if not row.marks)
    would = "which nanobot would send to a model; left out"
    yield marked, f"row is hidden, {would}", f"rows are hidden, {would}"
    mark = "of interruption or compaction"
    yield notes, f"notice or mark {mark} is left out", f"notices and marks {mark} are left out"
    yield (
        len(gone) - marked - notes,
        "result of a tool without its call is left out",
        "results of tools without their calls are left out",
    )
    yield len(copy.attic), "row of the attic is left out", "rows of the attic are left out"


def _of_rows(kept: Sequence[Message], path_of: Callable[[MediaRef], str | None]) -> Iterator[_Count]:
    files = sum(not path_of(file) for row in kept for file in row.media)
    others = sum(one.kind != CLI_APP for row in kept for one in row.attachments)
    unnamed = sum(len(lost_names(row.extra)) for row in kept)
    named = sum(row.sender is not None and bool(row.sender.name) for row in kept)
    made = sum(bool(row.turn_id or row.event_id or row.provider or row.model) for row in kept)
    nowhere = "nowhere that nanobot could read"
    yield files, f"file lies {nowhere} it; left out", f"files lie {nowhere} them; left out"
    kind = "of a kind that nanobot does not know"
    yield others, f"attachment {kind} is left out", f"attachments {kind} are left out"
    meaning = "by a name that has another meaning in nanobot; left out"
    yield unnamed, f"fact goes {meaning}", f"facts go {meaning}"
    sender = "kept with the id of their sender and without the name"
    yield named, f"message is {sender.replace('their', 'its')}", f"messages are {sender}"
    turn = "kept without their turn, event, provider or model"
    yield made, f"row is {turn.replace('their', 'its')}", f"rows are {turn}"
