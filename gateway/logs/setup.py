"""Setting the logs up: standard error, perhaps a file, everything else bridged in, and all of it redacted."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from functools import partial
from io import TextIOWrapper
from logging import INFO, LogRecord
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from loguru import logger

from gateway.domain.errors import ConfigError
from gateway.logs.bridge import bridge
from gateway.logs.lines import Render, render, render_brief

if TYPE_CHECKING:
    from loguru import Message

FILE_BYTES = 10 * 1024 * 1024
OLD_FILES = 5


def configure(
    *,
    level: str = "info",
    file: Path | None = None,
    secrets: Collection[str] = (),
    stderr_level: str | None = None,
    stderr: TextIO | None = None,
    brief: bool = False,
) -> Callable[[], None]:
    """Send every log record, warning and uncaught exception to standard error and `file`; return what undoes it.

    `secrets` is read for each record, so a set that grows later is obeyed. `stderr_level` keeps the terminal quieter
    than the file, for a chat in it; `brief` shows people there what happened, and leaves the rest to the file. Raises
    `ConfigError` if the file cannot be opened.
    """
    undo = ExitStack()
    logger.remove()
    undo.callback(logger.remove)
    _add(_Stream(stderr, secrets, render_brief if brief else render), stderr_level or level)
    if file is not None:
        rotating = _open(file)
        undo.callback(_close, rotating)
        _add(_File(rotating, secrets), level)
    bridge(_lowest(level, stderr_level), undo)
    return undo.close


def _add(sink: Callable[[Message], None], level: str) -> None:
    # The sinks render the record themselves: loguru's own formats could only be redacted piece by piece.
    logger.add(sink, level=level.upper(), format=lambda _: "", backtrace=False, diagnose=False, catch=False)


def _lowest(level: str, other: str | None) -> str:
    return min(level, other or level, key=lambda name: logger.level(name.upper()).no)


def _open(file: Path) -> _Private:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return _Private(file, maxBytes=FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError("logs.file", f"{file} cannot be written: {error.strerror}") from error


class _Private(RotatingFileHandler):
    """A rotating file that only its owner can read, since a log tells who talked with whom."""

    _next = 0

    def _open(self) -> TextIOWrapper:
        # Only a file that is new gets the mode, so an owner can open an existing one to others.
        opener = partial(os.open, mode=0o600)
        stream = open(self.baseFilename, self.mode, encoding=self.encoding, errors=self.errors, opener=opener)  # noqa: SIM115
        found = os.fstat(stream.fileno())
        self._is_regular, self._size = stat.S_ISREG(found.st_mode), found.st_size + self._next
        return cast(TextIOWrapper, stream)

    def shouldRollover(self, record: LogRecord) -> bool:
        """Count what is written: asking the file system about each line costs more than the line."""
        length = len(record.getMessage().encode("utf-8", "replace")) + 1
        is_full = self._is_regular and self._size + length > self.maxBytes
        # What makes the file full is the first line of the next one.
        self._next = length if is_full else 0
        self._size += length
        return is_full


def _close(file: _Private) -> None:
    # What a full disk could not take is lost to the log; that is no reason to end badly.
    with suppress(OSError, ValueError):
        file.close()


class _Stream:
    """Writes to standard error, whatever that is at the moment (a prompt on the terminal replaces it)."""

    def __init__(self, stream: TextIO | None, secrets: Collection[str], render: Render) -> None:
        self._stream = stream
        self._secrets = secrets
        self._render = render

    def __call__(self, message: Message) -> None:
        stream = self._stream or sys.stderr
        # Nobody can be told that the log itself cannot be written, and loguru would print the record unredacted.
        with suppress(OSError, ValueError):
            stream.write(self._render(message.record, self._secrets))
            stream.flush()


class _File:
    """Writes to a rotating file."""

    def __init__(self, handler: _Private, secrets: Collection[str]) -> None:
        self._handler = handler
        self._secrets = secrets

    def __call__(self, message: Message) -> None:
        line = render(message.record, self._secrets).rstrip("\n")
        with suppress(OSError, ValueError):
            self._handler.emit(LogRecord("", INFO, "", 0, line, None, None))
