"""The commands that only look: list, show, search and stats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import tables
from gateway.cli.options import FAILED, Config, Data
from gateway.cli.printing import hint, plain, print_json, print_lines, terminal_columns
from gateway.cli.sessions.access import Json, Ref, find, with_sessions, with_settings
from gateway.domain.errors import Refused
from gateway.domain.text import whole
from gateway.ports.sessions import SessionPage, SessionQuery

if TYPE_CHECKING:
    from gateway.app.sessions import SetAside
    from gateway.config.settings import Settings
    from gateway.domain.message import Message
    from gateway.domain.session import Session
    from gateway.sessions import SessionManager

Origin = Annotated[str | None, typer.Option(help="Only from this kind of place: slack, telegram, terminal, github …")]
Closed = Annotated[bool | None, typer.Option("--closed/--open", help="Only closed or only open ones.")]
Since = Annotated[str | None, typer.Option(help="Only used since then: 30m, 12h, 7d, 2w, or a date, in UTC.")]
Cursor = Annotated[str | None, typer.Option(help="Go on where the list before ended, as it says.")]
Before = Annotated[int | None, typer.Option(help="Only rows below this number.")]
After = Annotated[int | None, typer.Option(help="Only rows above this number, the oldest first.")]
Attic = Annotated[bool, typer.Option("--attic", help="The rows that were moved out of the session instead.")]
Words = Annotated[list[str], typer.Argument(help="All of these must be there; accents and case do not matter.")]

MOST = 100_000
"""The most that is printed at once."""
MOST_COUNTED = 1_000
"""How many rows of an attic are counted; to count them is to read them."""
LAST_ROW = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What is shown of a session; `retired` says how many rows are in its attic, for people."""

    session: Session
    retired: str
    set_aside: Sequence[SetAside]
    rows: Sequence[Message]


def list_command(
    channel: Annotated[str | None, typer.Option(help="Only of this channel.")] = None,
    origin: Origin = None,
    workspace: Annotated[str | None, typer.Option(help="Only of this workspace.")] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned ones.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived ones.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    closed: Closed = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(help="How many at most.")] = 50,
    cursor: Cursor = None,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """List sessions: pinned ones first, then the newest."""
    query = SessionQuery(
        channel=_text(channel),
        origin_kind=_kind(origin),
        workspace=_directory(workspace),
        pinned=True if pinned else None,
        archived=_archived(archived, everything),
        closed=closed,
        since=_since(since),
        cursor=_text(cursor),
        limit=_number("--limit", limit, 1, MOST),
    )
    _print_page(with_sessions(config, data, lambda manager: _page(manager, query)), as_json)


def show(
    ref: Ref,
    limit: Annotated[int, typer.Option(help="How many rows at most.")] = 20,
    before: Before = None,
    after: After = None,
    attic: Attic = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Show a session and its newest rows, each with its kind and the marks that hide it."""
    if before is not None and (after is not None or attic):
        raise Refused(f"expected --before or {'--attic' if attic else '--after'}, got both")
    limit = _number("--limit", limit, 0, MOST)
    below, above = (None if row is None else _number("a row", row, 0, LAST_ROW) for row in (before, after))

    async def work(settings: Settings) -> _Shown:
        from gateway.app.sessions import open_existing, session_manager, turns_set_aside

        async with open_existing(settings) as store:
            manager = session_manager(store.sessions)
            session = await find(manager, ref)
            retired = "" if as_json else await _count_attic(manager, session)
            if attic:
                rows = await manager.attic(session.id, after=above or 0, limit=limit + 1)
            else:
                rows = await manager.rows(session.id, before=below, after=above, limit=limit + 1)
            set_aside = await turns_set_aside(store, session.id)
            return _Shown(session=session, retired=retired, set_aside=set_aside, rows=rows)

    shown = with_settings(config, data, work)
    rows, rest = _cut(shown.rows, limit, oldest_first=attic or above is not None)
    _print_session(replace(shown, rows=rows), as_json)
    if rest:
        hint(f"There are more: {rest}")


def search(
    words: Words,
    limit: Annotated[int, typer.Option(help="How many hits at most.")] = 20,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Search titles and rows, the best match first. Exits with 1 if nothing is found."""
    limit = _number("--limit", limit, 1, MOST)
    text = whole(" ".join(words))
    found = with_sessions(config, data, lambda manager: manager.search(text, limit=limit + 1))
    shown = found[:limit]
    if as_json:
        print_json({**tables.header_data(one.session), "seq": one.seq, "snippet": one.snippet} for one in shown)
    elif shown:
        print_lines(tables.found_lines(shown, terminal_columns()))
    if not shown:
        raise typer.Exit(FAILED)
    if len(found) > limit:
        hint(f"There are more: --limit {min(limit * 2, MOST)}")


def stats(as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Count sessions and rows by channel."""
    from gateway.app.sessions import count_by_channel

    counted = [plain(count) for count in with_sessions(config, data, count_by_channel)]
    if as_json:
        print_json(counted)
    else:
        print_lines(tables.count_lines(counted, terminal_columns()) if counted else ["No sessions."])


async def _page(manager: SessionManager, query: SessionQuery) -> SessionPage:
    try:
        return await manager.list(query)
    except OverflowError:
        # A cursor is opaque here; a made-up one can hold a number that no store does.
        raise Refused(f"expected the cursor of a list before, got {query.cursor!r}") from None


def _print_page(page: SessionPage, as_json: bool) -> None:
    if as_json:
        print_json(map(tables.header_data, page.sessions))
    elif page.sessions:
        print_lines(tables.session_lines(page.sessions, terminal_columns()))
    else:
        print_lines(["No sessions."])
    if page.next_cursor is not None:
        hint(f"There are more: --cursor {page.next_cursor}")


async def _count_attic(manager: SessionManager, session: Session) -> str:
    """Return how many rows are in the attic, up to a number, and where to see them; nothing if there are none."""
    count = len(await manager.attic(session.id, limit=MOST_COUNTED + 1))
    rows = f"{min(count, MOST_COUNTED)}{' or more' if count > MOST_COUNTED else ''}"
    return f"{rows} (show --attic)" if count else ""


def _print_session(shown: _Shown, as_json: bool) -> None:
    if as_json:
        told = {"set_aside": plain(shown.set_aside), "rows": [tables.row_data(row) for row in shown.rows]}
        print_json([{**tables.header_data(shown.session), **told}])
        return
    print_lines(tables.header_lines(shown.session, shown.retired))
    for turn in shown.set_aside:
        when = f"{tables.moment(turn.begun_at)} UTC"
        print_lines([tables.fact_line("set aside", f"{when}, reference {turn.reference}: {turn.words}")])
    for row in shown.rows:
        print_lines(["", *tables.row_lines(row)])


def _cut(rows: Sequence[Message], limit: int, *, oldest_first: bool) -> tuple[Sequence[Message], str]:
    """Return at most `limit` of the rows, and the option that shows the next ones, if there are any."""
    if limit == 0 or len(rows) <= limit:
        return rows[:limit], ""
    if oldest_first:
        return rows[:limit], f"--after {rows[limit - 1].seq}"
    return rows[-limit:], f"--before {rows[-limit].seq}"


def _kind(origin: str | None) -> str | None:
    from gateway.app.sessions import origin_kind

    return None if origin is None else origin_kind(whole(origin))


def _archived(archived: bool, everything: bool) -> bool | None:
    if archived and everything:
        raise Refused("expected --archived or --all, got both")
    return None if everything else archived


def _since(text: str | None) -> datetime | None:
    from gateway.app.sessions import parse_since

    return None if text is None else parse_since(text, datetime.now(UTC))


def _number(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise Refused(f"{name}: expected a number from {least} to {most}, got {value}")
    return value


def _directory(path: str | None) -> str | None:
    """Return a directory as sessions have it: without the slash that a shell completes it with."""
    return None if path is None else whole(path).rstrip("/") or whole(path)


def _text(value: str | None) -> str | None:
    return None if value is None else whole(value)
