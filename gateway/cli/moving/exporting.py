"""`trunkline export`: one session or all of them, for another Trunkline, for nanobot, or for people."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from gateway.cli.moving.importing import renames
from gateway.cli.options import FAILED, Config, Data
from gateway.domain.errors import NotFound, Refused, Unavailable
from gateway.domain.text import visible, whole

if TYPE_CHECKING:
    from gateway.app.moving import Exported
    from gateway.config.settings import Settings

Format = Literal["jsonl", "nanobot", "markdown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What is to be written, and where to; `output` is a file, for nanobot a directory, or None."""

    ref: str | None
    format: Format
    output: Path | None
    files: bool
    hidden: bool
    timezone: str | None
    channels: list[str] | None


def export(
    ref: Annotated[str, typer.Argument(help="A session: its id, the first 6 characters of it, or its key.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All sessions, archived and closed ones too.")] = False,
    format: Annotated[Format, typer.Option(help="Our own, which is complete; nanobot's; or for people.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option(help="Where to write: a file, for nanobot a directory; else standard output.")
    ] = None,
    no_files: Annotated[
        bool, typer.Option("--no-files", help="Without the bytes of pictures and other files.")
    ] = False,
    hidden: Annotated[bool, typer.Option("--hidden", help="In Markdown, hidden rows and commands too.")] = False,
    timezone: Annotated[
        str | None, typer.Option(help="For nanobot: the zone of its clock; else this machine's.")
    ] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="For nanobot: what a channel is called there, as slack-acme=slack.")
    ] = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Write sessions out and change nothing. What nanobot's format cannot hold is told on standard error."""
    from gateway.app.sessions import read_settings
    from gateway.logs.setup import configure

    if bool(ref) is everything:
        raise Refused(f"expected a session or --all, got {'both' if ref else 'neither'}")
    if format == "nanobot" and everything and output is None:
        raise Refused("expected --output DIRECTORY: nanobot keeps each session in a file of its own")
    settings = read_settings(config, data, os.environ)
    wish = _Wish(
        ref=whole(ref) or None,
        format=format,
        output=output,
        files=not no_files,
        hidden=hidden,
        timezone=timezone,
        channels=channel,
    )
    undo = configure(level="warning", secrets=settings.secrets(), brief=True)
    try:
        asyncio.run(_export(settings, wish))
    except NotFound as error:
        _say(f"trunkline: {error}")
        raise typer.Exit(FAILED) from None
    finally:
        undo()


async def _export(settings: Settings, wish: _Wish) -> None:
    from gateway.app.moving import exported

    sessions = exported(settings, wish.ref)
    if wish.format == "nanobot":
        async for one in sessions:
            await _as_nanobot(one, wish)
        return
    with _written(wish.output) as out:
        async for one in sessions:
            lines = one.markdown(hidden=wish.hidden) if wish.format == "markdown" else await one.jsonl(files=wish.files)
            _write(out, lines)


async def _as_nanobot(one: Exported, wish: _Wish) -> None:
    from gateway.app.moving import zone_named

    if one.copy.session.closed_at is not None and wish.ref is None:
        _say(f"{one.copy.session.key}: left out: it is closed, and nanobot keeps one session for a chat")
        return
    folder = wish.output / "media" if wish.output is not None and wish.files else None
    file = await one.nanobot(folder, zone=zone_named(wish.timezone), channels=renames(wish.channels))
    if wish.output is not None:
        (wish.output / "sessions").mkdir(parents=True, exist_ok=True)
    with _written(None if wish.output is None else wish.output / "sessions" / file.name) as out:
        _write(out, file.lines)
    for loss in file.losses:
        _say(f"{one.copy.session.key}: not in nanobot's format: {loss}")


@contextmanager
def _written(path: Path | None) -> Iterator[TextIO]:
    """Open standard output, or a new file that appears only once it is whole."""
    if path is None:
        yield sys.stdout
        return
    if path.exists():
        raise Refused(f"expected a file that is not there yet, got {path}")
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            with draft.open("x", encoding="utf-8", newline="") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def _write(out: TextIO, lines: Iterable[str]) -> None:
    try:
        for line in lines:
            # A stream that knows no other characters than ASCII shows the rest as escapes.
            out.write(line if out.encoding.lower() == "utf-8" else _encodable(line, out.encoding))
        out.flush()
    except BrokenPipeError:  # a reader that has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(FAILED) from None


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _say(text: str) -> None:
    typer.echo(visible(text), err=True)
