"""What an importer reads from another program's files, before anything is kept of it."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gateway.ports.sessions import SessionCopy

_IDS = uuid.UUID("6f1c1a52-3d4e-5b8a-9c57-0d6d3e0b7f21")


def _nothing() -> None:
    """Remove nothing: the files are where they were found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """The bytes of a file that a row names: a file to be copied, or what stood in the row itself."""

    path: Path | None = None
    data: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession:
    """One session of a source.

    `name` is what the source calls it. `repairs` says, one sentence each, what was damaged and what was done about it;
    `notes` what else a person should know. Where nothing could be read, `copy` is None and `problem` says why. `files`
    holds the bytes behind the rows' media, by the `ref` that the copy gives them; a file that is missing has an empty
    ref and no entry. Whoever needs the files no longer calls `done`, which removes what was put aside for them.
    """

    name: str
    copy: SessionCopy | None
    repairs: Sequence[str] = ()
    notes: Sequence[str] = ()
    problem: str = ""
    files: Mapping[str, LocalFile] = field(default_factory=dict)
    done: Callable[[], None] = _nothing


class Source(ABC):
    """Sessions in the files of another program. Blocking; it never writes to where it reads from."""

    @abstractmethod
    def count(self) -> int:
        """Return about how many sessions there are, for a progress bar."""

    @abstractmethod
    def sessions(self) -> Iterator[FoundSession]:
        """Yield the sessions, one at a time, in the same order each time; damage costs what is damaged."""


def imported_id(source: str, *names: str) -> str:
    """Return the id of an imported session: the same for the same session however often it is read."""
    return uuid.uuid5(_IDS, "\n".join((source, *names))).hex
