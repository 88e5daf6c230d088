"""What of a session nanobot's files cannot hold, as sentences for the report of an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gateway.domain.compaction import CompactionState
from gateway.domain.message import Kind, MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.sessions import SessionCopy
from gateway.store.nanobot.names import CLI_APP
from gateway.store.nanobot.written_rows import lost_names


def losses(copy: SessionCopy, kept: Sequence[Message], path_of: Callable[[MediaRef], str | None]) -> Sequence[str]:
    """Return a sentence for each thing that is lost; `kept` are the rows that are not."""
    return [*_of_header(copy.session), *_left_out(copy, kept), *_of_rows(kept, path_of)]


def _of_header(session: Session) -> Iterator[str]:
    said = {
        "It is closed, and nanobot has one session to a key.": session.closed_at is not None,
        "nanobot pins nothing, and it is pinned.": session.pinned,
        "nanobot archives nothing, and it is archived.": session.archived,
        "Its workspace, agent, model or mode is left out.": any(_profile(session)),
        "What it may touch besides its workspace is left out.": bool(session.grants or session.extra_roots),
        "Where it came from is left out, but for its key.": session.origin is not None,
        "The session it was made from is left out.": session.parent_id is not None,
        "Where its replay begins is left out.": session.replay_from > session.consolidated_through + 1,
        "What was kept besides the summary of its earlier rows is left out.": _has_facts(session),
    }
    return (sentence for sentence, is_so in said.items() if is_so)


def _profile(session: Session) -> Sequence[str]:
    return session.workspace, session.agent, session.model, session.mode


def _has_facts(session: Session) -> bool:
    state = CompactionState.read(session.compaction)
    return state is not None and bool(state.working_state or state.user_messages)


def _left_out(copy: SessionCopy, kept: Sequence[Message]) -> Iterator[str]:
    places = {row.seq for row in kept}
    gone = [row for row in copy.rows if row.seq not in places]
    marked = sum(bool(row.marks) for row in gone)
    notes = sum(row.kind in (Kind.NOTICE, Kind.COMPACTED, Kind.INTERRUPTED) for row in gone if not row.marks)
    yield from _counted(marked, "rows are hidden, and nanobot would send them to a model; left out")
    yield from _counted(notes, "notices and marks of interruption or compaction are left out")
    yield from _counted(len(gone) - marked - notes, "results of tools without their calls are left out")
    yield from _counted(len(copy.attic), "rows of the attic are left out")


def _of_rows(kept: Sequence[Message], path_of: Callable[[MediaRef], str | None]) -> Iterator[str]:
    files = sum(not path_of(file) for row in kept for file in row.media)
    others = sum(one.kind != CLI_APP for row in kept for one in row.attachments)
    unnamed = sum(len(lost_names(row.extra)) for row in kept)
    named = sum(row.sender is not None and bool(row.sender.name) for row in kept)
    yield from _counted(files, "files lie nowhere that nanobot could read them; left out")
    yield from _counted(others, "attachments of a kind that nanobot does not know are left out")
    yield from _counted(unnamed, "facts go by a name that has another meaning in nanobot; left out")
    yield from _counted(named, "messages are kept with the id of their sender and without the name")
    made = sum(bool(row.turn_id or row.event_id or row.provider or row.model) for row in kept)
    yield from _counted(made, "rows are kept without their turn, event, provider or model")


def _counted(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"{count} {what}."
