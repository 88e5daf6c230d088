"""`trunkline export`: one session or all of them, for another Trunkline, for nanobot, or for people."""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, Iterable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from gateway.cli.moving.importing import renames
from gateway.cli.options import Config, Data
from gateway.cli.printing import encodable, hint, output
from gateway.cli.sessions.access import with_settings
from gateway.domain.errors import Refused, TrunklineError, Unavailable
from gateway.domain.text import whole

if TYPE_CHECKING:
    from gateway.app.moving import Exported
    from gateway.config.settings import Settings

Format = Literal["jsonl", "nanobot", "markdown"]

Ref = Annotated[str, typer.Argument(help="A session: its id, the first 6 characters of it, or its key.")]
Everything = Annotated[bool, typer.Option("--all", help="All sessions, archived and closed ones too.")]
Form = Annotated[Format, typer.Option(help="Our own, which is complete; nanobot's; or for people.")]
Output = Annotated[
    Path | None, typer.Option(help="Where to write: a file, for nanobot a directory; else standard output.")
]
NoFiles = Annotated[bool, typer.Option("--no-files", help="Without the bytes of pictures and other files.")]
Hidden = Annotated[bool, typer.Option("--hidden", help="In Markdown, hidden rows and commands too.")]
Zone = Annotated[str | None, typer.Option(help="For nanobot: the zone of its clock; else this machine's.")]
Renames = Annotated[
    list[str] | None, typer.Option(help="For nanobot: what a channel is called there, as slack-acme=slack.")
]


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
    ref: Ref = "",
    everything: Everything = False,
    format: Form = "jsonl",
    output: Output = None,
    no_files: NoFiles = False,
    hidden: Hidden = False,
    timezone: Zone = None,
    channel: Renames = None,
    data: Data = None,
    config: Config = None,
) -> None:
    """Write sessions out and change nothing. What nanobot's format cannot hold is told on standard error."""
    if bool(ref) is everything:
        raise Refused(f"expected a session or --all, got {'both' if ref else 'neither'}")
    if format == "nanobot" and everything and output is None:
        raise Refused("expected --output DIRECTORY: nanobot keeps each session in a file of its own")
    wish = _Wish(
        ref=whole(ref) or None,
        format=format,
        output=output,
        files=not no_files,
        hidden=hidden,
        timezone=timezone,
        channels=channel,
    )
    with_settings(config, data, lambda settings: _export(settings, wish))


async def _export(settings: Settings, wish: _Wish) -> None:
    from gateway.app.moving import exported

    async with aclosing(exported(settings, wish.ref)) as sessions:
        if wish.format == "nanobot":
            async for one in sessions:
                await _as_nanobot(one, wish)
        else:
            await _as_one_file(sessions, wish)


async def _as_one_file(sessions: AsyncIterable[Exported], wish: _Wish) -> None:
    with _written(wish.output) as out:
        async for one in sessions:
            if wish.format == "markdown":
                _write(out, one.markdown(hidden=wish.hidden))
                continue
            async with aclosing(one.jsonl(files=wish.files)) as pieces:
                async for piece in pieces:
                    _write(out, [piece])


async def _as_nanobot(one: Exported, wish: _Wish) -> None:
    from gateway.app.moving import zone_named

    if one.copy.session.closed_at is not None and wish.ref is None:
        hint(f"{one.copy.session.key}: left out: it is closed, and nanobot keeps one session for a chat")
        return
    folder = wish.output / "media" if wish.output is not None and wish.files else None
    file = await one.nanobot(folder, zone=zone_named(wish.timezone), channels=renames(wish.channels))
    path = None if wish.output is None else wish.output / "sessions" / file.name
    if path is not None:
        with _telling(path):
            path.parent.mkdir(parents=True, exist_ok=True)
    with _written(path) as out:
        _write(out, file.lines)
    for loss in file.losses:
        hint(f"{one.copy.session.key}: not in nanobot's format: {loss}")


@contextmanager
def _written(path: Path | None) -> Iterator[TextIO]:
    """Open standard output, or a new file that appears only once it is whole."""
    if path is None:
        with output() as out:
            yield out
        return
    with _telling(path):
        if path.exists():
            raise Refused(f"expected a file that is not there yet, got {path}")
        draft = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with draft.open("x", encoding="utf-8", newline="") as out:
                yield out
                out.flush()
                os.fsync(out.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except TrunklineError:
        raise
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error


def _write(out: TextIO, pieces: Iterable[str]) -> None:
    for piece in pieces:
        # A stream that knows no other characters than ASCII shows the rest as escapes.
        out.write(encodable(piece, out))
