"""`trunkline export`: one session or all of them, for another Trunkline, for nanobot, or for people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gateway.cli.moving.importing import renames
from gateway.cli.moving.sink import check_there_is_output, make_folder, opened
from gateway.cli.options import FAILED, Config, Data
from gateway.cli.printing import hint
from gateway.cli.sessions.access import with_settings
from gateway.domain.errors import Refused
from gateway.domain.text import whole

if TYPE_CHECKING:
    from gateway.app.moving import Exported
    from gateway.config.settings import Settings
    from gateway.store.nanobot.losses import Loss

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
    channels: Mapping[str, str]


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
    _check_options(format, hidden=hidden, timezone=timezone, channel=channel)
    check_there_is_output(output)
    wish = _Wish(
        ref=whole(ref) or None,
        format=format,
        output=output,
        files=not no_files,
        hidden=hidden,
        timezone=timezone,
        channels=renames(channel),
    )
    if not with_settings(config, data, lambda settings: _export(settings, wish)):
        raise typer.Exit(FAILED)


def _check_options(format: Format, *, hidden: bool, timezone: str | None, channel: list[str] | None) -> None:
    """Raise `Refused` for an option that would do nothing in this format."""
    options = (("--hidden", hidden, "markdown"), ("--timezone", timezone, "nanobot"), ("--channel", channel, "nanobot"))
    for option, given, wanted in options:
        if given and wanted != format:
            raise Refused(f"{option} goes with --format {wanted}, got --format {format}")


async def _export(settings: Settings, wish: _Wish) -> bool:
    """Return whether all that was wanted is written; what is not is told."""
    from gateway.app.moving import exported

    async with aclosing(exported(settings, wish.ref)) as sessions:
        return await (_as_nanobot(sessions, wish) if wish.format == "nanobot" else _as_one_file(sessions, wish))


async def _as_one_file(sessions: AsyncIterable[Exported], wish: _Wish) -> bool:
    from gateway.app.moving import closing

    count, is_whole = 0, True
    with opened(wish.output, is_json=wish.format == "jsonl") as sink:
        async for one in sessions:
            count += 1
            if wish.format == "markdown":
                sink.write(one.markdown(hidden=wish.hidden))
                continue
            async with aclosing(one.jsonl(files=wish.files)) as pieces:
                async for piece in pieces:
                    sink.write([piece])
            is_whole = _has_files(one) and is_whole
        if wish.format == "jsonl":
            sink.write([closing(count)])
    return is_whole


def _has_files(one: Exported) -> bool:
    """Return whether all files of a session came along; tell of those that did not."""
    for missing in one.missing:
        hint(f"{one.copy.session.key}: a file is missing: {missing}")
    return not one.missing


async def _as_nanobot(sessions: AsyncIterable[Exported], wish: _Wish) -> bool:
    from gateway.app.moving import zone_named

    batch = _NanobotBatch(wish, zone_named(wish.timezone))
    async for one in sessions:
        await batch.add(one)
    batch.tell()
    return batch.is_whole


class _NanobotBatch:
    """Sessions on their way into nanobot's files, with what is lost on it, summed up."""

    def __init__(self, wish: _Wish, zone: tzinfo) -> None:
        self._wish = wish
        self._zone = zone
        self._names: dict[str, str] = {}
        self._losses: Counter[Loss] = Counter()
        self._closed = 0
        self.is_whole = True

    async def add(self, one: Exported) -> None:
        """Write a session, or tell why it cannot be."""
        name, wish = one.nanobot_name(self._wish.channels), self._wish
        path = None if wish.output is None else wish.output / "sessions" / name
        if wish.ref is None and one.copy.session.closed_at is not None:
            self._closed += 1
            return
        if wish.ref is None and (why := self._why_not(one, name, path)):
            hint(f"{one.copy.session.key} ({one.copy.session.id}): left out: {why}")
            return
        self._names[name] = one.copy.session.id
        folder = wish.output / "media" if wish.output is not None and wish.files else None
        if path is not None:
            make_folder(path.parent)
        with opened(path, is_json=True) as sink:
            file = await one.nanobot(folder, zone=self._zone, channels=wish.channels)
            sink.write(file.lines)
        self._losses.update(file.losses)
        self.is_whole = _has_files(one) and self.is_whole

    def _why_not(self, one: Exported, name: str, path: Path | None) -> str:
        if name in self._names:
            self.is_whole = False
            return f"{self._names[name]} has the same key in nanobot, and was used later or is pinned"
        if path is not None and os.path.lexists(path):
            self.is_whole = False
            return f"{path} is there already, and is not written over"
        return ""

    def tell(self) -> None:
        """Tell what nanobot's format could not hold, a line for each reason."""
        if self._closed:
            closed = "1 closed session is" if self._closed == 1 else f"{self._closed} closed sessions are"
            hint(f"not in nanobot's format: {closed} left out, since nanobot keeps one session for a chat.")
        for loss, count in self._losses.items():
            hint(f"not in nanobot's format: {loss.told(count)}")
