"""What goes to standard output and standard error: lines for people, JSON for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import typer

from gateway.cli.options import FAILED
from gateway.domain.errors import TrunklineError, Unavailable
from gateway.domain.keys import SessionKey
from gateway.domain.text import visible


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; what the output's encoding cannot write is written as an escape."""
    text = "\n".join(lines) + "\n"
    with output() as out:
        out.write(encodable(text, out))


def print_json(objects: Iterable[Mapping[str, Any]]) -> None:
    """Print a list of objects. Nothing but ASCII, so that no control character and no encoding is in the way."""
    print_lines([json.dumps(list(objects), indent=2)])


def hint(text: str) -> None:
    """Say on standard error what does not belong to the output."""
    typer.echo(visible(text), err=True)


@contextmanager
def output() -> Iterator[TextIO]:
    """Give out standard output, and have all of it written; raise `Unavailable` where it takes no more.

    A reader that has seen enough ends the command silently.
    """
    if sys.stdout is None:
        raise Unavailable("cannot write the output: there is none")
    try:
        yield sys.stdout
        sys.stdout.flush()
    except BrokenPipeError:
        raise typer.Exit(FAILED) from None
    except TrunklineError:
        raise
    except OSError as error:
        raise Unavailable(f"cannot write the output: {error.strerror}") from error


def encodable(text: str, out: TextIO) -> str:
    """Return text with escapes for what a stream's encoding cannot write."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    return text if encoding.lower() == "utf-8" else text.encode(encoding, "backslashreplace").decode(encoding)


def terminal_columns() -> int | None:
    """Return how wide the terminal is, or None where there is none and nothing needs to be shortened."""
    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None


def plain(value: Any) -> Any:
    """Return a value as JSON has it: moments as ISO texts in UTC, keys as they are written, sets in order."""
    if isinstance(value, SessionKey):
        return str(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, frozenset):
        return sorted(plain(one) for one in value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
