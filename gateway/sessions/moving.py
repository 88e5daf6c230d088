"""Taking sessions in from elsewhere: files first, then each session whole, and a report of what became of each.

Every session is one transaction under an id that its source determines, so an import that was cut off is simply run
again, and one that is run twice changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gateway.domain.errors import NotFound, Refused
from gateway.domain.message import MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.media import Media, MediaMeta
from gateway.ports.moving import Found, LocalFile, Source
from gateway.ports.sessions import Restored, SessionCopy, Sessions

AT_ONCE = 16
"""Sessions taken in at the same time; they share the store's commits."""
CHUNK = 1 << 18


class Outcome(StrEnum):
    """What became of a session of the source."""

    IMPORTED = "imported"
    IMPORTED_CLOSED = "imported as closed"
    THERE = "there already"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One line of the report. `why` says what kept a session out; `files` counts those that were copied in."""

    name: str
    outcome: Outcome
    why: str = ""
    id: str | None = None
    key: str | None = None
    rows: int = 0
    files: int = 0
    repairs: Sequence[str] = ()
    notes: Sequence[str] = ()


class Importer:
    """Takes sessions in. `most_bytes` bounds a file that is copied; with `dry_run` nothing is kept."""

    def __init__(self, sessions: Sessions, media: Media, *, most_bytes: int, dry_run: bool = False) -> None:
        self._sessions = sessions
        self._media = media
        self._most_bytes = most_bytes
        self._dry_run = dry_run

    async def take_in(self, source: Source, told: Callable[[Taken], None] = lambda taken: None) -> Sequence[Taken]:
        """Take in all sessions of a source and return the report, in its order; `told` hears of each when it is done.

        Raises `Unavailable` when nothing can be kept; what was taken in until then stays.
        """
        numbered = enumerate(source.sessions())
        turn = asyncio.Lock()
        report: dict[int, Taken] = {}

        async def work() -> None:
            while (one := await _next(numbered, turn)) is not None:
                place, found = one
                report[place] = await self._take(found)
                told(report[place])

        async with asyncio.TaskGroup() as workers:
            for _ in range(AT_ONCE):
                workers.create_task(work())
        return [report[place] for place in sorted(report)]

    async def _take(self, found: Found) -> Taken:
        line = Taken(name=found.name, outcome=Outcome.SKIPPED, repairs=found.repairs, notes=found.notes)
        if found.copy is None:
            return replace(line, why=found.problem)
        session = found.copy.session
        line = replace(line, id=session.id, key=str(session.key), rows=len(found.copy.rows))
        try:
            if await self._is_there(session.id):
                return replace(line, outcome=Outcome.THERE)
            if self._dry_run:
                outcome = Outcome.IMPORTED_CLOSED if await self._is_taken(session) else Outcome.IMPORTED
                return replace(line, outcome=outcome, files=len(found.files))
            return await self._keep(found, found.copy, line)
        except (NotFound, Refused) as error:
            return replace(line, why=str(error))

    async def _keep(self, found: Found, copy: SessionCopy, line: Taken) -> Taken:
        kept, lost = await self._files(copy.session.id, copy, found.files)
        match await self._sessions.restore(_with_files(copy, kept)):
            case Restored.DELETED:
                return replace(line, why="it was imported before and has been deleted since")
            case Restored.KNOWN:
                return replace(line, outcome=Outcome.THERE)
            case Restored.ADDED_CLOSED:
                note = "its chat has an open session already, so this one is kept as closed"
                return replace(line, outcome=Outcome.IMPORTED_CLOSED, files=len(kept), notes=[*line.notes, *lost, note])
            case _:
                return replace(line, outcome=Outcome.IMPORTED, files=len(kept), notes=[*line.notes, *lost])

    async def _files(
        self, session_id: str, copy: SessionCopy, files: Mapping[str, LocalFile]
    ) -> tuple[dict[str, MediaRef], list[str]]:
        """Copy files in; return what the rows are to name instead, and a note for each that could not be copied."""
        kept: dict[str, MediaRef] = {}
        lost: list[str] = []
        for named in (media for row in _all_rows(copy) for media in row.media if media.ref in files):
            meta = MediaMeta(session_id=session_id, kind=named.kind, name=named.name, mime=named.mime)
            try:
                stored = await self._media.put(_bytes(files[named.ref]), meta, max_bytes=self._most_bytes)
            except (Refused, OSError) as error:
                lost.append(f"the file {named.name or named.kind} is not copied: {error}")
            else:
                kept[named.ref] = replace(named, ref=stored.ref, size_bytes=stored.size_bytes)
        return kept, lost

    async def _is_there(self, session_id: str) -> bool:
        try:
            await self._sessions.get(session_id)
        except NotFound:
            return False
        return True

    async def _is_taken(self, session: Session) -> bool:
        if session.closed_at is not None:
            return False
        try:
            await self._sessions.get(session.key)
        except NotFound:
            return False
        return True


async def _next(numbered: Iterator[tuple[int, Found]], turn: asyncio.Lock) -> tuple[int, Found] | None:
    # A generator serves one thread at a time.
    async with turn:
        return await asyncio.to_thread(next, numbered, None)


def _all_rows(copy: SessionCopy) -> Iterator[Message]:
    yield from copy.rows
    yield from (retired.row for retired in copy.attic)


def _with_files(copy: SessionCopy, kept: Mapping[str, MediaRef]) -> SessionCopy:
    return replace(
        copy,
        rows=[_row_with_files(row, kept) for row in copy.rows],
        attic=[replace(retired, row=_row_with_files(retired.row, kept)) for retired in copy.attic],
    )


def _row_with_files(row: Message, kept: Mapping[str, MediaRef]) -> Message:
    """Name what was copied in by its new reference; of anything else, only the name stays."""
    if not row.media:
        return row
    return replace(row, media=tuple(kept.get(media.ref) or replace(media, ref="") for media in row.media))


async def _bytes(file: LocalFile) -> AsyncIterator[bytes]:
    if file.path is None:
        yield file.data or b""
        return
    async for chunk in _chunks(file.path):
        yield chunk


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
