"""Reading our own JSON lines back (`gateway.store.export.jsonl` writes them): the same sessions, as they were.

A line that is damaged costs itself. Lines that belong to no session that could be read are told of and not kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from gateway.domain.message import MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.moving import Found, LocalFile, Source
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.export.fields import Unreadable, decoded_header, decoded_moment, decoded_row
from gateway.store.export.jsonl import FIRST_NAME, FORMAT
from gateway.store.importers.lines import MOST_REPAIRS, Line, read_lines

_SESSION_STARTS = (b'{"type":"session"', b'{"type": "session"')
_SENTENCES = {"rows": "rows", "attic": "rows of the attic", "media": "files"}


class TrunklineSource(Source):
    """Sessions in a file of ours, or in a stream of bytes, which is read once and not closed."""

    def __init__(self, origin: Path | BinaryIO, *, name: str = "") -> None:
        self._origin = origin
        self._name = name or (origin.name if isinstance(origin, Path) else "export")

    def count(self) -> int:
        """Return how many session lines there are; 0 for a stream that cannot be read twice."""
        if not isinstance(self._origin, Path) and not self._origin.seekable():
            return 0
        with self._opened() as stream:
            start = stream.tell()
            found = sum(line.startswith(_SESSION_STARTS) for line in stream)
            stream.seek(start)
        return found

    def sessions(self) -> Iterator[Found]:
        """Yield the sessions in their order, and what belongs to none as one that could not be read."""
        reading = _Reading(self._name)
        with self._opened() as stream:
            for number, raw in enumerate(stream, start=1):
                yield from reading.take(number, raw)
        yield from reading.close()

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return self._origin.open("rb") if isinstance(self._origin, Path) else nullcontext(self._origin)


@dataclass(slots=True)
class _Reading:
    """Where in a file the reading is: in a session, or in lines that belong to none."""

    name: str
    session: _Session | None = None
    strays: _Strays = field(default_factory=lambda: _Strays())

    def take(self, number: int, raw: bytes) -> Iterator[Found]:
        read = read_lines(raw.removesuffix(b"\n"), first_names=(FIRST_NAME,))
        for repair in read.repairs:
            (self.session or self.strays).tell(number, repair.partition(": ")[2])
        for line in read.objects:
            yield from self._take(replace(line, number=number))

    def _take(self, line: Line) -> Iterator[Found]:
        kind = line.value.get(FIRST_NAME)
        if kind == "session":
            yield from self.close()
            self.session = _Session(line, self.name)
        elif self.session is None or line.value.get("session", self.session.id) != self.session.id:
            self.strays.count(line.number)
        elif kind == "end":
            self.session.end(line)
            yield from self.close()
        else:
            self.session.take(line)

    def close(self) -> Iterator[Found]:
        """Yield what was read since the last session."""
        if self.session is not None:
            yield self.session.found()
        if self.strays.repairs or self.strays.lines:
            yield self.strays.found(self.name)
        self.session, self.strays = None, _Strays()


@dataclass(slots=True)
class _Told:
    """What is told of damage, up to a number of sentences."""

    repairs: list[str] = field(default_factory=list)
    untold: int = 0

    def tell(self, number: int, what: str) -> None:
        self.say(f"line {number}: {what}")

    def say(self, sentence: str) -> None:
        if len(self.repairs) < MOST_REPAIRS:
            self.repairs.append(sentence)
        else:
            self.untold += 1

    def told(self) -> Sequence[str]:
        return [*self.repairs, f"and {self.untold} damages more"] if self.untold else self.repairs


@dataclass(slots=True)
class _Strays(_Told):
    """Lines that stand in no session, or name another than the one they stand in."""

    lines: int = 0
    first: int = 0

    def count(self, number: int) -> None:
        self.first = self.first or number
        self.lines += 1

    def found(self, name: str) -> Found:
        of = f"{self.lines} lines from line {self.first} on belong to no session whose header could be read"
        problem = of if self.lines else "a damaged line outside of any session"
        return Found(name=name, copy=None, problem=problem, repairs=self.told())


class _Session(_Told):
    """A session that is being read, line by line."""

    def __init__(self, line: Line, name: str) -> None:
        super().__init__()
        self.id = line.value.get("id")
        self._name = self.id if isinstance(self.id, str) and self.id else name
        self._first = line.number
        self._rows: list[Message] = []
        self._attic: list[Retired] = []
        self._files: dict[str, LocalFile] = {}
        self._places: set[int] = set()
        self._events: set[str] = set()
        self._has_end = False
        self._problem = ""
        self._header = self._read_header(line)

    def _read_header(self, line: Line) -> Session | None:
        form = line.value.get("format")
        if form != FORMAT:
            self._problem = f"line {line.number}: written in format {form!r:.40}, and this release reads {FORMAT}"
            return None
        try:
            return decoded_header(line.value, lambda what: self.tell(line.number, what))
        except Unreadable as error:
            self._problem = f"line {line.number}: {error}"
            return None

    def take(self, line: Line) -> None:
        """Take a line of the session; one that cannot be read is told of."""
        if self._problem:
            return
        try:
            self._take(line)
        except Unreadable as error:
            self.tell(line.number, f"{error}; the line is left out")

    def _take(self, line: Line) -> None:
        kind = line.value.get(FIRST_NAME)
        if kind == "row":
            self._rows.append(self._row(line))
        elif kind == "attic":
            self._attic.append(self._retired(line))
        elif kind == "media":
            self._files.update([_file(line.value)])
        else:
            raise Unreadable(f"expected a row or a file, got {kind!r:.40}")

    def _row(self, line: Line) -> Message:
        row = decoded_row(line.value, lambda what: self.tell(line.number, what))
        if row.seq in self._places:
            raise Unreadable(f"there was a row {row.seq} before")
        self._places.add(row.seq)
        return row

    def _retired(self, line: Line) -> Retired:
        reason, moved_at = line.value.get("reason"), decoded_moment(line.value.get("moved_at"))
        return Retired(row=self._row(line), reason=reason if isinstance(reason, str) else "", moved_at=moved_at)

    def end(self, line: Line) -> None:
        """Take the last line, and tell what it counts otherwise than what was read."""
        self._has_end = True
        read = {"rows": len(self._rows), "attic": len(self._attic), "media": len(self._files)}
        for name, count in read.items() if not self._problem else ():
            if (said := line.value.get(name)) != count:
                self.tell(line.number, f"{said!r:.40} {_SENTENCES[name]} were written, and {count} could be read")

    def found(self) -> Found:
        """Return the session with everything that could be read of it."""
        if self._header is None:
            return Found(name=self._name, copy=None, problem=self._problem, repairs=self.told())
        if not self._has_end:
            self.tell(self._first, "the session that begins here has no end; what was behind is lost")
        copy = SessionCopy(
            session=self._header,
            rows=[self._with_files(self._once(row)) for row in self._rows],
            attic=[replace(retired, row=self._with_files(retired.row)) for retired in self._attic],
        )
        return Found(name=self._name, copy=copy, repairs=self.told(), notes=self._missing_files(), files=self._files)

    def _once(self, row: Message) -> Message:
        """Return the row without an event that another row stands for."""
        if row.event_id is None:
            return row
        if row.event_id in self._events:
            self.say(f"row {row.seq}: its event is that of an earlier row, left out")
            return replace(row, event_id=None)
        self._events.add(row.event_id)
        return row

    def _with_files(self, row: Message) -> Message:
        """Return the row with no reference to what did not come with it: here it may be another session's file."""
        if all(file.ref in self._files for file in row.media):
            return row
        media = tuple(file if file.ref in self._files else replace(file, ref="") for file in row.media)
        return replace(row, media=media)

    def _missing_files(self) -> Sequence[str]:
        missing = sum(_is_missing(file, self._files) for row in self._all_rows() for file in row.media)
        return [f"{missing} files that its rows name did not come with it"] if missing else []

    def _all_rows(self) -> Iterator[Message]:
        yield from self._rows
        yield from (retired.row for retired in self._attic)


def _is_missing(file: MediaRef, files: Mapping[str, LocalFile]) -> bool:
    return bool(file.ref) and file.ref not in files


def _file(line: Mapping[str, Any]) -> tuple[str, LocalFile]:
    ref, data = line.get("ref"), line.get("data")
    if not (isinstance(ref, str) and ref and isinstance(data, str)):
        raise Unreadable("expected a file with its reference and its bytes")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Unreadable("expected the bytes of a file in base64") from error
    if hashlib.sha256(content).hexdigest() != line.get("sha256"):
        raise Unreadable("the bytes of the file are not those that were written")
    return ref, LocalFile(data=content)
