"""`trunkline import`: taking over what another gateway kept, as often as wanted and without touching it.

Exit codes: 0 when every session is here now, 1 when one was skipped, 2 for what was asked wrongly or cannot be done.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from gateway.cli.columns import cell
from gateway.cli.options import FAILED, HELP, Config, Data, Plain, Sentences
from gateway.cli.printing import plain, print_json, print_lines
from gateway.cli.sessions.access import with_settings
from gateway.domain.errors import Refused
from gateway.domain.keys import check_channel_name

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.ports.moving import Source
    from gateway.sessions.moving import Taken

imports = typer.Typer(
    cls=Sentences,
    name="import",
    help="Take over sessions from nanobot, openworker or another Trunkline. What is there already stays as it is.",
    no_args_is_help=True,
    context_settings=HELP,
)

Directory = Annotated[str, typer.Argument(help="The directory to read; nothing in it is changed.")]
Renames = Annotated[
    list[str] | None,
    typer.Option("--channel", help="What a channel is called here, as slack=slack-acme; may be given several times."),
]
Zone = Annotated[
    str | None, typer.Option("--timezone", help="Where its clock stood, as Europe/Berlin; else this machine's.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
Json = Annotated[bool, typer.Option("--json", help="Print a list of JSON objects, one for each session.")]


@imports.command(cls=Plain)
def nanobot(
    directory: Directory,
    channel: Renames = None,
    timezone: Zone = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Import nanobot's sessions: its home, a workspace, or a directory of session files."""
    from gateway.app.moving import zone_named
    from gateway.store.nanobot.reader import NanobotSource
    from gateway.wakeups.clock import SystemClock

    source = NanobotSource(
        _place(directory), channels=renames(channel), zone=zone_named(timezone), now=SystemClock().now()
    )
    _import(source, dry_run=dry_run, as_json=as_json, data=data, config=config)


@imports.command(cls=Plain)
def openworker(
    directory: Directory,
    channel: Renames = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Import openworker's sessions: its state directory, with coworker.db and conversations."""
    from gateway.store.openworker.reader import OpenworkerSource
    from gateway.wakeups.clock import SystemClock

    source = OpenworkerSource(_place(directory), channels=renames(channel), now=SystemClock().now())
    _import(source, dry_run=dry_run, as_json=as_json, data=data, config=config)


@imports.command(cls=Plain)
def trunkline(
    file: Annotated[str, typer.Argument(help="A file that `trunkline export` wrote, or - for standard input.")],
    dry_run: DryRun = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Import what `trunkline export` wrote in its own format, without loss."""
    from gateway.store.jsonl.reader import TrunklineSource

    source = TrunklineSource(_standard_input() if file == "-" else _place(file))
    _import(source, dry_run=dry_run, as_json=as_json, data=data, config=config)


def _place(path: str) -> Path:
    """Return where to read; raise `Refused` for an empty text, which would mean the directory one is in."""
    if not path:
        raise Refused("expected the name of a directory or a file, got an empty text")
    return Path(path)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise Refused("expected an export on standard input, and there is none")
    return sys.stdin.buffer


def renames(pairs: Sequence[str] | None) -> Mapping[str, str]:
    """Return what `--channel old=new` says; raise `Refused` for what says nothing."""
    named: dict[str, str] = {}
    for pair in pairs or ():
        old, is_there, new = pair.partition("=")
        if not (old and is_there and new) or old in named:
            raise Refused(f"--channel: expected OLD=NEW once for each, got {pair!r}")
        named[old] = check_channel_name(new)
    return named


def _import(source: Source, *, dry_run: bool, as_json: bool, data: Path | None, config: Path | None) -> None:
    async def work(settings: Settings) -> Sequence[Taken]:
        from gateway.app.moving import import_all

        with _progress(source) as told:
            return await import_all(settings, source, dry_run=dry_run, told=told)

    taken = with_settings(config, data, work)
    if as_json:
        print_json([plain(asdict(one)) for one in taken])
    else:
        print_lines(_report(taken, dry_run))
    if any(one.is_skipped for one in taken):
        raise typer.Exit(FAILED)


@contextmanager
def _progress(source: Source) -> Iterator[Callable[[Taken], None]]:
    """Show on a terminal how far it is; a file is left what is told at the end."""
    # Asked for in any case: what cannot be read at all is told before a store is made.
    count = source.count()
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda taken: None
        return
    with typer.progressbar(length=count, label="Importing", file=sys.stderr) as bar:
        yield lambda taken: bar.update(1)


def _report(taken: Sequence[Taken], dry_run: bool) -> Iterator[str]:
    for one in taken:
        if one.why or one.repairs or one.notes:
            yield f"{cell(one.name)}: {one.outcome.value}" + (f": {cell(one.why)}" if one.why else "")
            # Of what is not here, nothing was repaired.
            repaired = "" if one.is_skipped else "repaired: "
            yield from (f"  {repaired}{cell(repair)}" for repair in one.repairs)
            yield from (f"  {cell(note)}" for note in one.notes)
    if dry_run:
        yield "Nothing was changed; this is what would be done."
    counts = Counter(one.outcome.value for one in taken)
    done = [one for one in taken if one.is_imported]
    rows, files = sum(one.rows for one in done), sum(one.files for one in done)
    told = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(counts.items())) or "no sessions were found"
    yield f"{told[0].upper()}{told[1:]} (rows: {rows}, files: {files})"
