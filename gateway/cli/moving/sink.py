"""Where an export goes: standard output, or a file that appears only once it is whole."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from gateway.cli.options import FAILED
from gateway.cli.printing import output
from gateway.domain.errors import Refused, TrunklineError, Unavailable


class Sink:
    """Takes text and writes it in an encoding; what that cannot write becomes an escape.

    What goes wrong here is told as what it is; all else that does while an export is written is not the output's fault.
    """

    def __init__(self, file: BinaryIO, name: str, encoding: str = "utf-8") -> None:
        self._file = file
        self._name = name
        self._encoding = encoding

    def write(self, pieces: Iterable[str]) -> None:
        """Write pieces of text; a reader that has seen enough ends the command silently."""
        for piece in pieces:
            data = piece.encode(self._encoding, "backslashreplace")
            try:
                self._file.write(data)
            except BrokenPipeError:
                raise typer.Exit(FAILED) from None
            except OSError as error:
                raise Unavailable(f"cannot write {self._name}: {error.strerror}") from error


@contextmanager
def opened(path: Path | None, *, is_json: bool) -> Iterator[Sink]:
    """Open standard output, or a new file that appears only once it is whole.

    JSON is always UTF-8, since nothing else is JSON; what is for people is written as their terminal reads it.
    """
    if path is not None:
        with _new_file(path) as sink:
            yield sink
        return
    with output() as out:
        out.flush()
        encoding = "utf-8" if is_json else out.encoding
        yield Sink(out.buffer, "the output", encoding)


@contextmanager
def _new_file(path: Path) -> Iterator[Sink]:
    with _telling(path):
        if _is_there(path):
            raise Refused(f"expected a file that is not there yet, got {path}")
        # Short, so that every name that a file may have is one that can be written.
        draft = path.with_name(f".trunkline-{os.getpid()}.part")
        file = draft.open("xb")
    try:
        with file:
            yield Sink(file, str(path))
            with _telling(path):
                file.flush()
                os.fsync(file.fileno())
        with _telling(path):
            draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _is_there(path: Path) -> bool:
    """Return whether there is anything; raise `OSError` for a name that no file can have, before all is written."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except TrunklineError:
        raise
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make a directory with those above it; raise `Unavailable` where that cannot be."""
    with _telling(path):
        path.mkdir(parents=True, exist_ok=True)


def check_there_is_output(path: Path | None) -> None:
    """Raise `Unavailable` where nothing could be written, before anything is read for it."""
    if path is None and sys.stdout is None:
        raise Unavailable("cannot write the output: there is none; --output names a file")
