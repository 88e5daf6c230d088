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

from gateway.domain.errors import NotFound, Refused, TrunklineError
from gateway.domain.message import MediaRef, Message
from gateway.ports.media import Media, MediaMeta, kept_as
from gateway.ports.moving import FoundSession, LocalFile, Source
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

    @property
    def is_imported(self) -> bool:
        """Whether the session came in now."""
        return self.outcome in (Outcome.IMPORTED, Outcome.IMPORTED_CLOSED)

    @property
    def is_skipped(self) -> bool:
        """Whether the session is not here."""
        return self.outcome is Outcome.SKIPPED


class _Unreadable(Exception):
    """A file of the source cannot be read."""


class Importer:
    """Takes sessions in. `most_bytes` bounds a file that is copied; with `dry_run` nothing is kept."""

    def __init__(self, sessions: Sessions, media: Media, *, most_bytes: int, dry_run: bool = False) -> None:
        self._sessions = sessions
        self._media = media
        self._most_bytes = most_bytes
        self._dry_run = dry_run
        self._promised: set[str] = set()

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
                try:
                    report[place] = await self._take(found)
                finally:
                    if found.files:
                        await asyncio.to_thread(found.done)
                told(report[place])

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(AT_ONCE):
                    workers.create_task(work())
        except ExceptionGroup as group:
            if (foreseen := group.subgroup(TrunklineError)) is None:
                raise
            # Whichever worker met it first speaks for all.
            raise foreseen.exceptions[0] from group
        return [report[place] for place in sorted(report)]

    async def _take(self, found: FoundSession) -> Taken:
        line = Taken(name=found.name, outcome=Outcome.SKIPPED, repairs=found.repairs, notes=found.notes)
        if found.copy is None:
            return replace(line, why=found.problem)
        session = found.copy.session
        line = replace(line, id=session.id, key=str(session.key), rows=len(found.copy.rows))
        try:
            restored = await self._sessions.would_restore(found.copy)
            if restored in (Restored.KNOWN, Restored.DELETED):
                return _told(line, restored, 0)
            if self._dry_run:
                return self._trial(line, found, restored)
            await self._sessions.discard_unfinished(session.id)
            kept, lost = await self._files(session.id, found.copy, found.files)
            restored = await self._sessions.restore(_with_files(found.copy, kept))
            return _told(replace(line, notes=[*line.notes, *lost]), restored, len(kept), session.closed_at is not None)
        except (NotFound, Refused) as error:
            return replace(line, why=str(error))

    def _trial(self, line: Taken, found: FoundSession, restored: Restored) -> Taken:
        """Return what would become of a session, also for those of its own source that come before it."""
        assert found.copy is not None
        session = found.copy.session
        if session.id in self._promised:
            return _told(line, Restored.KNOWN, 0)
        is_closed = session.closed_at is not None
        if not is_closed and str(session.key) in self._promised:
            restored = Restored.ADDED_CLOSED
        self._promised |= {session.id} if is_closed else {session.id, str(session.key)}
        lost = [self._lost(named, why) for named, file in _named(found) if (why := self._too_large(file))]
        return _told(replace(line, notes=[*line.notes, *lost]), restored, len(found.files) - len(lost), is_closed)

    def _too_large(self, file: LocalFile) -> str:
        try:
            size = len(file.data or b"") if file.path is None else file.path.stat().st_size
        except OSError:
            return ""
        return f"it has {size} bytes, and at most {self._most_bytes} are kept" if size > self._most_bytes else ""

    def _lost(self, named: MediaRef, why: str) -> str:
        return f"the file {named.name or named.kind} is not copied: {why}"

    async def _files(
        self, session_id: str, copy: SessionCopy, files: Mapping[str, LocalFile]
    ) -> tuple[dict[str, MediaRef], list[str]]:
        """Copy files in; return what the rows are to name instead, and a note for each that could not be copied.

        Raises `Unavailable` where the file is in order and cannot be kept, so that the session waits for it.
        """
        kept: dict[str, MediaRef] = {}
        lost: list[str] = []
        for named, file in _named_in(copy, files):
            if why := self._too_large(file):
                lost.append(self._lost(named, why))
                continue
            meta = MediaMeta(session_id=session_id, kind=named.kind, name=named.name, mime=named.mime)
            try:
                stored = await self._media.put(_bytes(file), meta, max_bytes=self._most_bytes)
            except (Refused, _Unreadable) as error:
                lost.append(self._lost(named, str(error)))
            else:
                kept[named.ref] = kept_as(named, stored)
        return kept, lost


def _named(found: FoundSession) -> Iterator[tuple[MediaRef, LocalFile]]:
    return iter(()) if found.copy is None else _named_in(found.copy, found.files)


def _named_in(copy: SessionCopy, files: Mapping[str, LocalFile]) -> Iterator[tuple[MediaRef, LocalFile]]:
    """Yield each file once, however many rows name it, as the first of them does."""
    seen: set[str] = set()
    for media in (media for row in _all_rows(copy) for media in row.media):
        if media.ref in files and media.ref not in seen:
            seen.add(media.ref)
            yield media, files[media.ref]


def _told(line: Taken, restored: Restored, files: int, was_closed: bool = False) -> Taken:
    """Return the line with what became, or would become, of the session."""
    match restored:
        case Restored.DELETED:
            return replace(line, why="it was imported before and has been deleted since")
        case Restored.KNOWN:
            return replace(line, outcome=Outcome.THERE)
        case Restored.ADDED_CLOSED:
            note = "its chat has an open session already, so this one is kept as closed"
            return replace(line, outcome=Outcome.IMPORTED_CLOSED, files=files, notes=[*line.notes, note])
        case Restored.ADDED:
            outcome = Outcome.IMPORTED_CLOSED if was_closed else Outcome.IMPORTED
            return replace(line, outcome=outcome, files=files)


async def _next(numbered: Iterator[tuple[int, FoundSession]], turn: asyncio.Lock) -> tuple[int, FoundSession] | None:
    # A generator serves one thread at a time, and a thread goes on although nobody waits for it any more.
    async with turn:
        reading = asyncio.create_task(asyncio.to_thread(next, numbered, None))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait({reading})
            raise


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


def _bytes(file: LocalFile) -> AsyncIterator[bytes]:
    return _once(file.data or b"") if file.path is None else _chunks(file.path)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    try:
        with await asyncio.to_thread(path.open, "rb") as file:
            while chunk := await asyncio.to_thread(file.read, CHUNK):
                yield chunk
    except OSError as error:
        # The path is left out: it may tell more than whoever reads the report is to know.
        raise _Unreadable(f"it cannot be read: {error.strerror}") from error
