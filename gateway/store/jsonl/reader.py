"""Reading our own JSON lines back (`gateway.store.jsonl.writer` writes them): the same sessions, as they were.

A line that is damaged costs itself. A session of which lines are missing without a trace, as where a file was cut, is
not taken at all: it would be here by half, and for good. Lines that belong to no session that could be read are told of
and not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gateway.domain.errors import Refused, Unavailable
from gateway.ports.moving import FoundSession, Source
from gateway.store.importers.lines import Line, Repairs, read_lines
from gateway.store.jsonl.read_session import ReadSession
from gateway.store.jsonl.writer import DATA_ENDS, DATA_STARTS, FILE_END, FIRST_NAME

_SESSION_STARTS = (b'{"type":"session"', b'{"type": "session"')
_MEDIA_STARTS = b'{"type":"media"'
_KINDS = frozenset({"session", "row", "attic", "media", "end", FILE_END})
MOST_LOOKED_AT = 1 << 16
"""How much of a first line tells what kind of file another one is."""


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
        yield from reading.end()

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
        except FileNotFoundError:
            raise Refused(f"there is no such file: {self._origin}") from None
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
    session: ReadSession | None = None
    strays: _Strays = field(default_factory=lambda: _Strays())
    sessions: int = 0
    is_ended: bool = False
    is_ours: bool = False
    begins: bytes = b""

    def take(self, number: int, raw: bytes) -> Iterator[FoundSession]:
        text, data = _with_its_bytes(raw)
        read = read_lines(text, first_names=(FIRST_NAME,))
        for repair in read.repairs:
            (self.session or self.strays).tell(number, repair.partition(": ")[2])
        if read.lost and self.session is not None:
            self.session.lose_line()
        self.begins = self.begins or text.strip()[:MOST_LOOKED_AT]
        self.is_ended = self.is_ended and not text.strip()
        for line in read.objects:
            more = {} if data is None else {"data": data}
            yield from self._take(Line(number=number, value=line.value | more))

    def _take(self, line: Line) -> Iterator[FoundSession]:
        kind = line.value.get(FIRST_NAME)
        self.is_ours = self.is_ours or (isinstance(kind, str) and kind in _KINDS)
        if kind == "session":
            yield from self.close()
            self.session = ReadSession(line, self.name)
            self.sessions += 1
        elif kind == FILE_END:
            yield from self.close()
            yield from self._counted(line)
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

    def end(self) -> Iterator[FoundSession]:
        """Yield what is left at the end of the file, and that it is no end where it is none."""
        if not self.is_ours:
            yield FoundSession(name=self.name, copy=None, problem=_no_export(self.begins))
            return
        yield from self.close()
        if not self.is_ended:
            problem = "the file ends without its closing line, so sessions behind this place may be missing"
            yield FoundSession(name=self.name, copy=None, problem=problem)

    def _counted(self, line: Line) -> Iterator[FoundSession]:
        """Take the closing line of a file, behind which another file may follow."""
        said, found = line.value.get("sessions"), self.sessions
        self.sessions, self.is_ended = 0, True
        if said != found:
            problem = f"line {line.number}: {said!r:.40} sessions were written, and {found} were found"
            yield FoundSession(name=self.name, copy=None, problem=problem)


@dataclass(slots=True)
class _Strays(Repairs):
    """Lines that stand in no session, or name another than the one they stand in."""

    lines: int = 0
    first: int = 0

    def count(self, number: int) -> None:
        self.first = self.first or number
        self.lines += 1

    def found(self, name: str) -> FoundSession:
        several = f"{self.lines} lines from line {self.first} on belong"
        of = f"{several if self.lines > 1 else f'line {self.first} belongs'} to no session whose header could be read"
        problem = of if self.lines else "a damaged line outside of any session"
        return FoundSession(name=name, copy=None, problem=problem, repairs=self.all())


def _with_its_bytes(raw: bytes) -> tuple[bytes, memoryview | None]:
    """Return a line without the bytes of a file in it, and these, which are too long to be read as the rest is."""
    place = raw.rfind(DATA_STARTS) if raw.startswith(_MEDIA_STARTS) and raw.endswith(DATA_ENDS) else -1
    if place < 0:
        return raw.removesuffix(b"\n"), None
    return raw[:place] + b"}", memoryview(raw)[place + len(DATA_STARTS) : -len(DATA_ENDS)]


def _no_export(begins: bytes) -> str:
    """Return what a file is in which no line is ours."""
    if not begins:
        return "it is empty"
    if begins.startswith(b"SQLite format 3"):
        return "it is a database and no export; use `trunkline import openworker` or `nanobot` with its directory"
    try:
        first = json.loads(begins)
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, dict) and ("_type" in first or "role" in first):
        return "it is a session of nanobot's, or one like it; use `trunkline import nanobot` with its directory"
    return "it is nothing that `trunkline export` wrote in its own format"
