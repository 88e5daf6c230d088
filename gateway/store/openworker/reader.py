"""Importing from openworker: an index in SQLite, and a file of JSON lines for each session.

What is damaged costs itself: without the index the files are read alone, without a file the header is kept. Its
sessions belong to no chat, so each gets a key of its own, from which it can be attached to one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gateway.domain.errors import Refused
from gateway.domain.message import Message
from gateway.ports.moving import FoundSession, Source
from gateway.ports.sessions import SessionCopy
from gateway.store.importers.counts import many
from gateway.store.openworker.headers import SOURCE, Columns, read_header, spelled, updated_at
from gateway.store.openworker.index import NAME, Index, open_index
from gateway.store.openworker.rows import Pictures, read_row
from gateway.store.openworker.transcripts import (
    ENDING,
    Conversations,
    Transcript,
    read_inline,
    read_transcript,
)
from gateway.store.openworker.values import moment

FOLDER = "conversations"


class OpenworkerSource(Source):
    """The sessions of openworker's state directory, of a workspace with a `.coworker` in it, or of `conversations`.

    `channels` may give the channel of the keys another name. `now` stands for the time of what has none.
    """

    def __init__(self, directory: Path, *, channels: Mapping[str, str] = {}, now: datetime) -> None:
        self._index, folder = _locate(directory)
        self._conversations = Conversations(folder)
        self._channel = channels.get(SOURCE, SOURCE)
        self._now = now

    def count(self) -> int:
        """Return how many sessions there are."""
        with open_index(self._index) as index:
            return len(self._names(index))

    def sessions(self) -> Iterator[FoundSession]:
        """Yield the sessions in order of their ids; the index itself comes first if it is damaged, as a problem."""
        with open_index(self._index) as index:
            if index.damage and index.is_there:
                yield FoundSession(name=NAME, copy=None, problem=index.damage)
            for name in self._names(index):
                yield self._found(name, index)

    def _names(self, index: Index) -> Sequence[str]:
        return sorted({*index.rows, *self._conversations.names()})

    def _found(self, session_id: str, index: Index) -> FoundSession:
        try:
            source = self._read(session_id, index)
        except OSError as error:
            return FoundSession(name=spelled(session_id), copy=None, problem=f"its rows cannot be read ({error})")
        if session_id not in index.rows and not source.transcript.objects:
            problem = "nothing can be read of its file, and the index does not know it"
            return FoundSession(name=spelled(session_id), copy=None, problem=problem, repairs=source.transcript.repairs)
        return self._session(session_id, source, index)

    def _read(self, session_id: str, index: Index) -> _Rows:
        path = self._conversations.path(session_id)
        transcript = Transcript() if path is None else read_transcript(path.read_bytes())
        inline = None if transcript.objects else index.messages(session_id)
        if inline is not None:
            return _Rows(read_inline(inline))
        if path is None:
            return _Rows(transcript, note="it has no file of rows; only its header was found")
        return _Rows(transcript, changed_at=moment(path.stat().st_mtime))

    def _session(self, session_id: str, source: _Rows, index: Index) -> FoundSession:
        pictures = Pictures()
        rows = [read_row(raw, seq, pictures) for seq, raw in enumerate(source.transcript.objects, start=1)]
        columns = Columns(index.rows.get(session_id, {}))
        used = updated_at(columns.row) or _last_time(rows) or source.changed_at or self._now
        session = read_header(session_id, columns, rows, source.transcript, used=used, channel=self._channel)
        dated = [row if row.created_at else replace(row, created_at=used) for row in rows]
        unknown = [] if session_id in index.rows else [f"{_why(index)}; its header is made of its rows"]
        return FoundSession(
            name=spelled(session_id),
            copy=SessionCopy(session=session, rows=dated),
            repairs=[*unknown, *source.transcript.repairs, *columns.repairs, *pictures.repairs],
            notes=[*([source.note] if source.note else []), *_fewer(columns, source)],
            files=pictures.files,
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    transcript: Transcript
    note: str = ""
    changed_at: datetime | None = None


def _locate(directory: Path) -> tuple[Path, Path]:
    """Return where the index is or would be, and the folder of conversations; raise `Refused` if neither is there."""
    try:
        return _located(directory)
    except OSError as error:
        raise Refused(f"expected a directory that can be read, got {str(directory)!r}: {error.strerror}") from error


def _located(directory: Path) -> tuple[Path, Path]:
    for state in (directory, directory / ".coworker"):
        if (state / NAME).is_file() or (state / FOLDER).is_dir():
            return state / NAME, state / FOLDER
    parent = directory.resolve().parent
    if directory.is_dir() and (directory.resolve().name == FOLDER or _is_beside_index(directory, parent)):
        return parent / NAME, directory
    raise Refused(f"expected a folder with openworker's {NAME} or {FOLDER} in it, got {directory}")


def _is_beside_index(directory: Path, parent: Path) -> bool:
    return (parent / NAME).is_file() and any(name.endswith(ENDING) for name in os.listdir(directory))


def _last_time(rows: Sequence[Message]) -> datetime | None:
    return max((row.created_at for row in rows if row.created_at), default=None)


def _why(index: Index) -> str:
    return index.damage or f"{NAME} does not know it"


def _fewer(columns: Columns, source: _Rows) -> Sequence[str]:
    expected, found = columns.row.get("n_msgs"), len(source.transcript.objects)
    if not isinstance(expected, int) or expected <= found or source.note:
        return []
    return [f"the index counts {many(expected, 'row')}, {found} found"]
