"""A session's rows as openworker keeps them: a file of JSON lines, or in old versions a list inside the index."""

from __future__ import annotations

import json
import os
from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.domain.errors import Refused
from gateway.store.importers.lines import Line, read_lines

ENDING = ".jsonl"

_BLANK = b" \t\r\0"
_SEPARATORS = ", \t\r\n"
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)
"""Only tells where a value ends; what it is, the lines are read for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The rows that could be read, and where each stood among all rows, from 0; `length` counts the lost ones too."""

    objects: Sequence[Mapping[str, Any]] = ()
    places: Sequence[int] = ()
    length: int = 0
    repairs: Sequence[str] = ()


def read_transcript(data: bytes) -> Transcript:
    """Return the rows of a file of JSON lines, whatever is in it."""
    read = read_lines(data)
    lost = _lost(data, read.objects) if read.repairs else []
    return Transcript(
        objects=[line.value for line in read.objects],
        places=[place + bisect(lost, line.number) for place, line in enumerate(read.objects)],
        length=len(read.objects) + len(lost),
        repairs=read.repairs if data else ["its file is empty"],
    )


def _lost(data: bytes, read: Sequence[Line]) -> Sequence[int]:
    """Return the numbers of the lines that hold something, of which nothing was read."""
    numbers = {line.number for line in read}
    lines = enumerate(data.split(b"\n"), start=1)
    return [number for number, line in lines if number not in numbers and line.strip(_BLANK)]


def read_inline(data: bytes) -> Transcript:
    """Return the rows of a JSON list; of a torn one those before the tear."""
    text = data.decode("utf-8", "replace").strip()
    lines = [piece.replace("\n", " ") for piece in _pieces(text.removeprefix("[").removesuffix("]"))]
    return read_transcript("\n".join(lines).encode())


def _pieces(text: str) -> Iterator[str]:
    """Yield the text of each value of a list, and at last what cannot be read."""
    at = _skip(text, 0)
    while at < len(text):
        try:
            end = _DECODER.raw_decode(text, at)[1]
        except (ValueError, RecursionError):
            end = len(text)
        yield text[at:end]
        at = _skip(text, end)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SEPARATORS:
        at += 1
    return at


class Conversations:
    """The folder of the files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def names(self) -> set[str]:
        """Return the ids of the sessions that have a file; raise `Refused` if the folder cannot be listed."""
        try:
            files = [name for name in os.listdir(self._folder) if name.endswith(ENDING) and name != ENDING]
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise Refused(f"expected a folder that can be listed: {error}") from error
        return {name.removesuffix(ENDING) for name in files}

    def path(self, session_id: str) -> Path | None:
        """Return the file of a session, or None where it has none inside the folder, whatever its id says."""
        name = f"{session_id}{ENDING}"
        path = self._folder / name
        if Path(name).name != name or not os.path.isfile(path):
            return None
        return path if path.resolve().parent == self._folder.resolve() else None
