"""Importing the sessions of nanobot, in any of the layouts it has had: a file of JSON lines each, or a database.

Each file is looked into twice, one at a time: first for its key and times, to decide which of several files of one
session is the one that goes on, then for its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path

from gateway.domain.errors import InvalidKey
from gateway.domain.keys import SessionKey, check_channel_name
from gateway.domain.message import Message
from gateway.domain.session import Session
from gateway.domain.text import visible, whole
from gateway.ports.moving import FoundSession, Source
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.importers.lines import Line, Lines, read_lines
from gateway.store.nanobot.database import opened
from gateway.store.nanobot.files import DATABASE, Entry, Folder, entries, folders, real_workspace, shown_name
from gateway.store.nanobot.header import Header, consolidated_rows, read_header
from gateway.store.nanobot.keys import key_origin, session_key
from gateway.store.nanobot.media import MediaFiles
from gateway.store.nanobot.names import METADATA, PROVIDER_STATE
from gateway.store.nanobot.plan import Planned, file_time, plan
from gateway.store.nanobot.read_rows import RowReader


class NanobotSource(Source):
    """The sessions of a nanobot home, workspace or directory of sessions; nothing there is ever written.

    `channels` renames channels, `zone` is where the times without one were written, and `now` stands for a time that is
    nowhere told. Raises `Refused` for a directory without sessions, or a channel that cannot be.
    """

    def __init__(self, directory: Path, *, channels: Mapping[str, str] = {}, zone: tzinfo, now: datetime) -> None:
        for name in channels.values():
            check_channel_name(name)
        self._folders = folders(directory)
        self._channels = channels
        self._zone = zone
        self._now = now

    def count(self) -> int:
        """Return how many files, and sessions of databases, there are that may hold a session."""
        with ExitStack() as stack:
            return len(self._entries(stack, []))

    def sessions(self) -> Iterator[FoundSession]:
        """Yield what each file holds, folder by folder, in order of their names."""
        problems: list[FoundSession] = []
        with ExitStack() as stack:
            found = self._entries(stack, problems)
            yield from problems
            for planned in plan(found, self._channels, zone=self._zone, now=self._now):
                yield self._found(planned)

    def _entries(self, stack: ExitStack, problems: list[FoundSession]) -> list[Entry]:
        databases, unread = self._databases(stack, problems)
        found: list[Entry] = []
        for folder in self._folders:
            try:
                files = entries(folder)
            except OSError as error:
                problems.append(_nothing(folder.label, f"the directory cannot be read: {_why(error)}"))
                continue
            if real_workspace(folder) in unread:
                # nanobot moved them into the database and went on there: an older state would be here for good.
                why = "it is not read, for its session may be newer in a database that cannot be read"
                problems += (_nothing(shown_name(entry), why) for entry in files)
            else:
                found += [*databases[folder], *files]
        return found

    def _databases(self, stack: ExitStack, problems: list[FoundSession]) -> tuple[dict[Folder, list[Entry]], set[str]]:
        """Return the sessions of the databases, and the workspaces of which one cannot be read."""
        found: dict[Folder, list[Entry]] = {}
        unread: set[str] = set()
        for folder in self._folders:
            try:
                found[folder] = list(stack.enter_context(opened(folder)))
            except OSError as error:
                way = "mend it, or move it away to import the files that are left"
                problems.append(_nothing(f"{folder.label}/{DATABASE}", f"it cannot be read: {_why(error)}; {way}"))
                unread.add(real_workspace(folder))
        return found, unread

    def _found(self, planned: Planned) -> FoundSession:
        name = shown_name(planned.entry)
        if planned.problem:
            return _nothing(name, planned.problem)
        try:
            data, changed = planned.entry.read()
        except OSError as error:
            return _nothing(name, f"it cannot be read: {_why(error)}")
        lines = read_lines(data)
        if not lines.objects:
            problem = "there is nothing in it that can be read" if data.strip() else "it is empty"
            return replace(_nothing(name, problem), repairs=lines.repairs)
        if not any(_is_of_nanobot(line) for line in lines.objects):
            return _nothing(name, "it is no session of nanobot's: it has no row of metadata, and nobody speaks in it")
        try:
            key = session_key(planned.key, self._channels)
        except InvalidKey as error:
            return replace(_nothing(name, f"its key cannot be one here: {error}"), notes=planned.notes)
        return self._read(planned, key, lines, file_time(changed, self._now))

    def _read(self, planned: Planned, key: SessionKey, lines: Lines, changed: datetime) -> FoundSession:
        metadata = [line.value for line in lines.objects if line.value.get("_type") == METADATA]
        header = read_header(metadata[-1] if metadata else {}, zone=self._zone, fallback=changed)
        media = MediaFiles(planned.entry.folder.workspace)
        reader = RowReader(zone=self._zone, fallback=header.created_at, media=media)
        spoken = [line for line in lines.objects if _is_message(line)]
        rows = [reader.message(line.value, seq) for seq, line in enumerate(spoken, start=1)]
        aside = [line for line in lines.objects if not _is_message(line) and line.value.get("_type") != METADATA]
        attic = [_retired(line, reader, seq, header) for seq, line in enumerate(aside, start=len(rows) + 1)]
        session = _session(planned, key, header, rows, through=_through(header, spoken, lines, bool(metadata)))
        missing = () if metadata else ("it has no row of metadata; its times are the file's",)
        return FoundSession(
            name=_shown(planned.key),
            copy=SessionCopy(session=session, rows=rows, attic=attic),
            repairs=lines.repairs,
            notes=tuple(_shown(note) for note in (*planned.notes, *missing, *media.missing.all())),
            files=media.files,
        )


def _is_of_nanobot(line: Line) -> bool:
    return line.value.get("_type") == METADATA or "role" in line.value


def _is_message(line: Line) -> bool:
    return "_type" not in line.value or (isinstance(line.value.get("role"), str) and line.value["_type"] != METADATA)


def _retired(line: Line, reader: RowReader, seq: int, header: Header) -> Retired:
    reason = "provider state" if line.value["_type"] == PROVIDER_STATE else "no message"
    return Retired(row=reader.notice(line.value, seq), reason=reason, moved_at=header.updated_at)


def _through(header: Header, spoken: list[Line], lines: Lines, has_metadata: bool) -> int:
    lost = lines.lost if has_metadata else ()
    return consolidated_rows(header.offset, [line.number for line in spoken], lost)


def _session(planned: Planned, key: SessionKey, header: Header, rows: list[Message], *, through: int) -> Session:
    return Session(
        id=planned.id,
        key=key,
        created_at=header.created_at,
        updated_at=header.updated_at,
        closed_at=header.updated_at if planned.is_closed else None,
        title=header.title,
        title_source=header.title_source,
        message_count=len(rows),
        origin=key_origin(planned.key),
        consolidated_through=through,
        compaction=header.compaction,
        metadata=header.metadata,
    )


def _nothing(name: str, problem: str) -> FoundSession:
    return FoundSession(name=_shown(name), copy=None, problem=_shown(problem))


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _shown(text: str) -> str:
    return visible(whole(text))
