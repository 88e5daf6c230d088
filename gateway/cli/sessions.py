"""`trunkline sessions`: finding, showing and keeping the stored sessions in order, beside a running gateway or without.

Exit codes are grep's: 0 for done, 1 for nothing found (no such session, no hit), 2 for what was asked wrongly or cannot
be done now. An empty `list` is an answer, not a failure.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from gateway.cli import tables
from gateway.cli.options import HELP, Config, Data, Sentences
from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.text import whole
from gateway.ports.sessions import SessionPage, SessionQuery

if TYPE_CHECKING:
    from gateway.domain.message import Message
    from gateway.domain.session import Session
    from gateway.ports.sessions import Found, Sessions
    from gateway.sessions import SessionManager


sessions = typer.Typer(
    cls=Sentences,
    name="sessions",
    help="List, show, search and keep the stored sessions in order; beside a running gateway too.",
    no_args_is_help=True,
    context_settings=HELP,
)

Json = Annotated[bool, typer.Option("--json", help="Print a list of JSON objects, for programs.")]
Ref = Annotated[str, typer.Argument(help="A session: its id, the first 6 or more characters of it, or its key.")]
Off = Annotated[bool, typer.Option("--off", help="Take it back.")]

NOTHING_FOUND = 1
MOST = 100_000
"""The most that is printed at once."""
LAST_ROW = 1 << 60

T = TypeVar("T")


@sessions.command("list")
def list_command(
    channel: Annotated[str | None, typer.Option(help="Only of this channel.")] = None,
    origin: Annotated[str | None, typer.Option(help="Only from this kind of place: slack, telegram, github …")] = None,
    workspace: Annotated[str | None, typer.Option(help="Only of this workspace.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned ones.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived ones.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    closed: Annotated[bool | None, typer.Option("--closed/--open", help="Only closed or only open ones.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only used since then: 30m, 12h, 7d, 2w, or a date, in UTC.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="Go on where the list before ended, as it says.")] = None,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """List sessions: pinned ones first, then the newest."""
    from gateway.app.sessions import parse_since

    if archived and everything:
        raise Refused("expected --archived or --all, got both")
    query = SessionQuery(
        channel=_text(channel),
        origin_kind=_text(origin),
        workspace=_text(workspace),
        pinned=True if pinned else None,
        archived=None if everything else archived,
        closed=closed,
        since=None if since is None else parse_since(since, datetime.now(UTC)),
        cursor=_text(cursor),
        limit=_number("--limit", limit, 1, MOST),
    )
    page = _with_sessions(config, data, lambda manager, _: _page(manager, query))
    if as_json:
        tables.print_json(map(tables.header_data, page.sessions))
    else:
        tables.print_lines(
            tables.session_lines(page.sessions, tables.terminal_columns()) if page.sessions else ["No sessions."]
        )
    if page.next_cursor is not None:
        typer.echo(f"There are more: --cursor {page.next_cursor}", err=True)


@sessions.command()
def show(
    ref: Ref,
    limit: Annotated[int, typer.Option(help="How many rows at most.")] = 20,
    before: Annotated[int | None, typer.Option(help="Only rows below this number.")] = None,
    after: Annotated[int | None, typer.Option(help="Only rows above this number, the oldest first.")] = None,
    attic: Annotated[
        bool, typer.Option("--attic", help="The rows that were moved out of the session instead.")
    ] = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show a session and its newest rows, each with its kind and the marks that hide it."""
    if before is not None and (after is not None or attic):
        raise Refused(f"expected --before or {'--attic' if attic else '--after'}, got both")
    limit = _number("--limit", limit, 0, MOST)
    below, above = (None if row is None else _number("a row", row, 0, LAST_ROW) for row in (before, after))

    async def work(manager: SessionManager, port: Sessions) -> tuple[Session, Sequence[Message]]:
        session = await _find(manager, ref)
        if attic:
            return session, await port.attic(session.id, after=above or 0, limit=limit)
        return session, await manager.rows(session.id, before=below, after=above, limit=limit)

    session, rows = _with_sessions(config, data, work)
    if as_json:
        tables.print_json([{**tables.header_data(session), "rows": [tables.row_data(row) for row in rows]}])
        return
    tables.print_lines(tables.header_lines(session))
    for row in rows:
        tables.print_lines(["", *tables.row_lines(row)])


@sessions.command()
def search(
    words: Annotated[list[str], typer.Argument(help="All of these must be there; accents and case do not matter.")],
    limit: Annotated[int, typer.Option(help="How many hits at most.")] = 20,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Search titles and rows, the best match first. Exits with 1 if nothing is found."""
    limit = _number("--limit", limit, 1, MOST)
    found: Sequence[Found] = _with_sessions(
        config, data, lambda manager, _: manager.search(whole(" ".join(words)), limit=limit)
    )
    if as_json:
        tables.print_json({**tables.header_data(one.session), "seq": one.seq, "snippet": one.snippet} for one in found)
    elif found:
        tables.print_lines(tables.found_lines(found, tables.terminal_columns()))
    if not found:
        raise typer.Exit(NOTHING_FOUND)


@sessions.command()
def rename(
    ref: Ref,
    title: Annotated[str, typer.Argument(help="The new title; no generated one will replace it.")],
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Give a session a title of your own."""
    done = _change(ref, config, data, lambda manager, session: manager.rename(session.id, whole(title)))
    _tell("Renamed", done, as_json)


@sessions.command()
def pin(ref: Ref, off: Off = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Keep a session at the top of lists."""
    done = _change(ref, config, data, lambda manager, session: manager.pin(session.id, not off))
    _tell("No longer pinned" if off else "Pinned", done, as_json)


@sessions.command()
def archive(ref: Ref, off: Off = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Hide a session from ordinary lists. It stays open, and nothing of it is lost."""
    done = _change(ref, config, data, lambda manager, session: manager.archive(session.id, not off))
    _tell("No longer archived" if off else "Archived", done, as_json)


@sessions.command()
def close(ref: Ref, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """End a session, so that the next message in its chat begins a new one. It stays listed and readable."""

    async def ended(manager: SessionManager, session: Session) -> Session:
        if session.closed_at is not None or (closed := await manager.close(session.key)) is None:
            raise Refused(f"the session {session.id} is closed already")
        return closed

    _tell("Closed", _change(ref, config, data, ended), as_json)


@sessions.command()
def fork(
    ref: Ref,
    key: Annotated[str, typer.Argument(help="The key of the copy, as channel:chat or channel:chat:thread.")],
    before_user: Annotated[
        int,
        typer.Option(help="Copy what came before this message of a person, counted from 0; their number means all."),
    ],
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Begin a new session with a copy of another one's beginning."""
    target = SessionKey.parse(key)
    done = _change(
        ref, config, data, lambda manager, session: manager.fork_before_user(session.id, before_user, target)
    )
    _tell("Forked", done, as_json)


@sessions.command()
def delete(
    ref: Ref,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Erase a session and all its rows, for good. Asks first."""
    if not yes and not sys.stdin.isatty():
        raise Refused("expected --yes, since there is no terminal to ask on")
    session = _with_sessions(config, data, lambda manager, _: _find(manager, ref))
    if not yes:
        what = f"{tables.cell(tables.name(session))} ({session.key}, rows: {session.message_count})"
        typer.confirm(f"Erase {what} for good?", abort=True, err=True)
    # Outside the loop, where Ctrl-C ends the question at once; so it may be gone by now, which is what was wanted.
    _with_sessions(config, data, lambda manager, _: manager.delete(session.id))
    _tell("Erased", session, as_json)


@sessions.command()
def stats(as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Count sessions and rows by channel."""
    from gateway.app.sessions import count_by_channel

    counts = _with_sessions(config, data, lambda manager, _: count_by_channel(manager))
    counted = [tables.plain(count) for count in counts]
    if as_json:
        tables.print_json(counted)
    else:
        tables.print_lines(tables.count_lines(counted, tables.terminal_columns()) if counted else ["No sessions."])


def _with_sessions(
    config: Path | None, data: Path | None, work: Callable[[SessionManager, Sessions], Awaitable[T]]
) -> T:
    """Open the store, do the work and close it. What is not found is a sentence and an exit code of its own."""
    from gateway.app.sessions import open_sessions, read_settings
    from gateway.logs.setup import configure
    from gateway.sessions import SessionManager

    settings = read_settings(config, data, os.environ)

    async def body() -> T:
        async with open_sessions(settings) as port:
            return await work(SessionManager(port), port)

    undo = configure(level="warning", secrets=settings.secrets(), brief=True)
    try:
        return asyncio.run(body())
    except NotFound as error:
        typer.echo(f"trunkline: {error}", err=True)
        raise typer.Exit(NOTHING_FOUND) from None
    finally:
        undo()


def _change(
    ref: str,
    config: Path | None,
    data: Path | None,
    change: Callable[[SessionManager, Session], Awaitable[Session]],
) -> Session:
    """Do something to the session that `ref` names, and return what it is then."""

    async def work(manager: SessionManager, _: Sessions) -> Session:
        return await change(manager, await _find(manager, ref))

    return _with_sessions(config, data, work)


async def _find(manager: SessionManager, ref: str) -> Session:
    from gateway.app.sessions import find_session

    return await find_session(manager, whole(ref))


async def _page(manager: SessionManager, query: SessionQuery) -> SessionPage:
    try:
        return await manager.list(query)
    except OverflowError:
        # A cursor is opaque here; a made-up one can hold a number that no store does.
        raise Refused(f"expected the cursor of a list before, got {query.cursor!r}") from None


def _number(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Refused(f"{name}: expected a number from {least} to {most}, got {value}")
    return value


def _text(value: str | None) -> str | None:
    return None if value is None else whole(value)


def _tell(what: str, session: Session, as_json: bool) -> None:
    if as_json:
        tables.print_json([tables.header_data(session)])
    else:
        tables.print_lines([f"{what}: {tables.cell(tables.name(session))} ({session.key}, {session.id})"])
