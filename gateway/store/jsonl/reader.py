"""Reading our own JSON lines back (`gateway.store.jsonl.writer` writes them): the same sessions, as they were.

A line that is damaged costs itself. Lines that belong to no session that could be read are told of and not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from gateway.domain.errors import Refused, Unavailable
from gateway.domain.message import MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.moving import FoundSession, LocalFile, Source
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.importers.lines import Line, Repairs, read_lines
from gateway.store.jsonl.fields import Unreadable, decoded_header, decoded_moment, decoded_row
from gateway.store.jsonl.spool import Spool
from gateway.store.jsonl.writer import DATA_ENDS, DATA_STARTS, FIRST_NAME, FORMAT

_SESSION_STARTS = (b'{"type":"session"', b'{"type": "session"')
_MEDIA_STARTS = b'{"type":"media"'
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
            found = sum(line.startswith(_SESSION_STARTS) for line in self._lines(stream))
            stream.seek(start)
        return found

    def sessions(self) -> Iterator[FoundSession]:
        """Yield the sessions in their order, and what belongs to none as one that could not be read."""
        reading = _Reading(self._name)
        with self._opened() as stream:
            for number, raw in enumerate(self._lines(stream), start=1):
                yield from reading.take(number, raw)
        yield from reading.close()

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if not isinstance(self._origin, Path):
            yield self._origin
            return
        what = "expected a file that `trunkline export` wrote and that can be read"
        try:
            # It is read twice, which a pipe cannot be.
            if self._origin.exists() and not self._origin.is_file():
                raise Refused(f"{what}, got {self._origin}, which is no file; standard input is named -")
            stream = self._origin.open("rb")
        except OSError as error:
            raise Refused(f"{what}, got {self._origin}: {error.strerror}") from error
        with stream:
            yield stream

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        try:
            yield from stream
        except OSError as error:
            raise Unavailable(f"cannot read {self._name}: {error.strerror}") from error


@dataclass(slots=True)
class _Reading:
    """Where in a file the reading is: in a session, or in lines that belong to none."""

    name: str
    session: _Session | None = None
    strays: _Strays = field(default_factory=lambda: _Strays())

    def take(self, number: int, raw: bytes) -> Iterator[FoundSession]:
        text, data = _with_its_bytes(raw)
        read = read_lines(text, first_names=(FIRST_NAME,))
        for repair in read.repairs:
            (self.session or self.strays).tell(number, repair.partition(": ")[2])
        for line in read.objects:
            more = {} if data is None else {"data": data}
            yield from self._take(Line(number=number, value=line.value | more))

    def _take(self, line: Line) -> Iterator[FoundSession]:
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

    def close(self) -> Iterator[FoundSession]:
        """Yield what was read since the last session."""
        if self.session is not None:
            yield self.session.found()
        if self.strays.told or self.strays.lines:
            yield self.strays.found(self.name)
        self.session, self.strays = None, _Strays()


@dataclass(slots=True)
class _Strays(Repairs):
    """Lines that stand in no session, or name another than the one they stand in."""

    lines: int = 0
    first: int = 0

    def count(self, number: int) -> None:
        self.first = self.first or number
        self.lines += 1

    def found(self, name: str) -> FoundSession:
        of = f"{self.lines} lines from line {self.first} on belong to no session whose header could be read"
        problem = of if self.lines else "a damaged line outside of any session"
        return FoundSession(name=name, copy=None, problem=problem, repairs=self.all())


class _Session(Repairs):
    """A session that is being read, line by line."""

    def __init__(self, line: Line, name: str) -> None:
        super().__init__()
        self.id = line.value.get("id")
        self._name = self.id if isinstance(self.id, str) and self.id else name
        self._first = line.number
        self._rows: list[Message] = []
        self._attic: list[Retired] = []
        self._files: dict[str, LocalFile] = {}
        self._spool = Spool()
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
            self._take_file(line.value)
        else:
            raise Unreadable(f"expected a row or a file, got {kind!r:.40}")

    def _take_file(self, line: Mapping[str, Any]) -> None:
        ref, data = line.get("ref"), line.get("data")
        if not (isinstance(ref, str) and ref and isinstance(data, str | memoryview)):
            raise Unreadable("expected a file with its reference and its bytes")
        try:
            encoded = data.encode() if isinstance(data, str) else data
            self._files[ref] = self._spool.keep(encoded, str(line.get("sha256")))
        except ValueError as error:
            raise Unreadable("the bytes of the file are not those that were written") from error

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

    def found(self) -> FoundSession:
        """Return the session with everything that could be read of it."""
        if self._header is None:
            return FoundSession(name=self._name, copy=None, problem=self._problem, repairs=self.all())
        if not self._has_end:
            self.tell(self._first, "the session that begins here has no end; what was behind is lost")
        copy = SessionCopy(
            session=self._header,
            rows=[self._with_files(self._once(row)) for row in self._rows],
            attic=[replace(retired, row=self._with_files(retired.row)) for retired in self._attic],
        )
        return FoundSession(
            name=self._name,
            copy=copy,
            repairs=self.all(),
            notes=self._missing_files(),
            files=self._files,
            done=self._spool.remove,
        )

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


def _with_its_bytes(raw: bytes) -> tuple[bytes, memoryview | None]:
    """Return a line without the bytes of a file in it, and these, which are too long to be read as the rest is."""
    place = raw.rfind(DATA_STARTS) if raw.startswith(_MEDIA_STARTS) and raw.endswith(DATA_ENDS) else -1
    if place < 0:
        return raw.removesuffix(b"\n"), None
    return raw[:place] + b"}", memoryview(raw)[place + len(DATA_STARTS) : -len(DATA_ENDS)]
