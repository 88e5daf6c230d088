"""One session of a file of ours while it is read, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gateway.domain.message import MediaRef, Message
from gateway.domain.session import Session
from gateway.ports.moving import FoundSession, LocalFile
from gateway.ports.sessions import Retired, SessionCopy
from gateway.store.importers.counts import many
from gateway.store.importers.lines import Line, Repairs
from gateway.store.jsonl.fields import Unreadable, decoded_header, decoded_moment, decoded_row
from gateway.store.jsonl.spool import Spool
from gateway.store.jsonl.writer import FIRST_NAME, FORMAT

_SENTENCES = {"rows": "rows", "attic": "rows of the attic", "media": "files"}
_CUT = "so it was cut short, and is not imported by half; import a whole export of it"


class ReadSession(Repairs):
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
        self._losses = 0
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
            self._losses += 1
            self.tell(line.number, f"{error}; the line is left out")

    def lose_line(self) -> None:
        """Count a line that could not be read; that is told already."""
        self._losses += 1

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

    def _take_file(self, line: Mapping[str, object]) -> None:
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
        missing = 0
        for name, count in read.items() if not self._problem else ():
            if (said := line.value.get(name)) != count:
                missing += abs(said - count) if isinstance(said, int) else 1
                self.tell(line.number, f"{said!r:.40} {_SENTENCES[name]} were written, and {count} could be read")
        if missing > self._losses:
            self._problem = f"{many(missing - self._losses, 'line is', 'lines are')} missing of the session, {_CUT}"

    def found(self) -> FoundSession:
        """Return the session with everything that could be read of it."""
        if not (self._problem or self._has_end):
            self._problem = f"the session that begins in line {self._first} has no end, {_CUT}"
        if self._problem or self._header is None:
            self._spool.remove()
            return FoundSession(name=self._name, copy=None, problem=self._problem, repairs=self.all())
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
        return [f"{many(missing, 'file')} that its rows name did not come with it"] if missing else []

    def _all_rows(self) -> Iterator[Message]:
        yield from self._rows
        yield from (retired.row for retired in self._attic)


def _is_missing(file: MediaRef, files: Mapping[str, LocalFile]) -> bool:
    return bool(file.ref) and file.ref not in files
