"""The commands that change a session: rename, pin, archive, close, clear, fork and delete."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import tables
from gateway.cli.columns import cell
from gateway.cli.options import Config, Data
from gateway.cli.printing import hint, print_lines
from gateway.cli.sessions.access import Json, Ref, find, tell, with_sessions, with_settings
from gateway.domain.errors import NotFound, Refused
from gateway.domain.keys import SessionKey
from gateway.domain.text import whole
from gateway.domain.titles import LONGEST_TITLE

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from gateway.domain.session import Session
    from gateway.ports.sessions import Sessions
    from gateway.sessions import SessionManager

Title = Annotated[str, typer.Argument(help="The new title; no generated one will replace it.")]
Off = Annotated[bool, typer.Option("--off", help="Take it back.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Copy = Annotated[str, typer.Argument(help="The key of the copy, as channel:chat or channel:chat:thread.")]
Chat = Annotated[str, typer.Argument(help="The key of the chat, as channel:chat or channel:chat:thread.")]
BeforeUser = Annotated[
    int, typer.Option(help="Copy what came before this message of a person, counted from 0; their number means all.")
]


def rename(ref: Ref, title: Title, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Give a session a title of your own."""
    wanted = " ".join(whole(title).split())
    done = _change(ref, config, data, lambda manager, session: manager.rename(session.id, wanted))
    tell("Renamed", done, as_json)
    if len(wanted) > LONGEST_TITLE:
        hint(f"The title was shortened to {LONGEST_TITLE} characters.")


def pin(ref: Ref, off: Off = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Keep a session at the top of lists."""
    done = _change(ref, config, data, lambda manager, session: manager.pin(session.id, not off))
    tell("No longer pinned" if off else "Pinned", done, as_json)


def archive(ref: Ref, off: Off = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Hide a session from ordinary lists. It stays open, and nothing of it is lost."""
    done = _change(ref, config, data, lambda manager, session: manager.archive(session.id, not off))
    tell("No longer archived" if off else "Archived", done, as_json)


def close(ref: Ref, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """End a session, so that the next message in its chat begins a new one. It stays listed and readable."""

    async def ended(manager: SessionManager, session: Session) -> Session:
        if session.closed_at is not None or (closed := await manager.close(session.key)) is None:
            raise Refused(f"the session {session.id} is closed already")
        return closed

    tell("Closed", _change(ref, config, data, ended), as_json)


def clear(ref: Ref, yes: Yes = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Empty a session: all its rows go to the attic, where `show --attic` shows them. Asks first."""
    session = _agreed("Clear {}, so that the bot remembers none of it?", ref, yes, config, data)

    async def work(manager: SessionManager) -> tuple[Session, int]:
        moved = await manager.clear(session.id)
        return await manager.get(session.id), moved

    done, moved = with_sessions(config, data, work)
    # A person is told the name it had, which may have gone with its rows.
    tell(f"Cleared (rows: {moved})", done if as_json else session, as_json, moved=moved)


def fork(
    ref: Ref,
    key: Copy,
    before_user: BeforeUser,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Begin a new session with a copy of another one's beginning."""
    target = SessionKey.parse(key)
    done = _change(
        ref, config, data, lambda manager, session: manager.fork_before_user(session.id, before_user, target)
    )
    tell("Forked", done, as_json)


def attach(
    ref: Ref,
    key: Chat,
    close_other: Annotated[bool, typer.Option("--close", help="Close the session that is open there.")] = False,
    as_json: Json = False,
    data: Data = None,
    config: Config = None,
) -> None:
    """Let a chat go on with this session, which may be closed or from elsewhere."""
    target = SessionKey.parse(key)

    before, now, closed = with_settings(config, data, lambda settings: _attach(settings, ref, target, close_other))
    tell("Attached", now, as_json, was=str(before.key), closed=None if closed is None else closed.id)
    if as_json:
        return
    if before.key != target:
        print_lines([f"  was {before.key}"])
    if closed is not None:
        print_lines([f"  closed for it: {cell(tables.name(closed))} ({closed.id})"])


def delete(ref: Ref, yes: Yes = False, as_json: Json = False, data: Data = None, config: Config = None) -> None:
    """Erase a session and all its rows, for good. Asks first."""
    session = _agreed("Erase {} for good?", ref, yes, config, data)
    # It may be gone by now, which is what was wanted.
    with_sessions(config, data, lambda manager: manager.delete(session.id))
    tell("Erased", session, as_json)


async def _attach(
    settings: Settings, ref: str, key: SessionKey, close_other: bool
) -> tuple[Session, Session, Session | None]:
    """Return the session as it was and as it is then, and the one that was closed for it."""
    from gateway.app.sessions import has_channel, open_sessions, session_manager

    async with open_sessions(settings) as port:
        before = await find(session_manager(port), ref)
        other = await _open_one(port, key)
        if other is None or other.id == before.id:
            now, other = await port.attach(before.id, key), None
        elif close_other:
            now = await port.attach(before.id, key, closing=other.id)
        else:
            raise Refused(f"the chat {key} has an open session, {other.id}; --close closes that one")
    if not has_channel(settings, key.channel):
        hint(f"No channel named {key.channel} is configured here, so nobody can write in {key}.")
    return before, now, other


async def _open_one(port: Sessions, key: SessionKey) -> Session | None:
    try:
        return await port.get(key)
    except NotFound:
        return None


def _change(
    ref: str,
    config: Path | None,
    data: Path | None,
    change: Callable[[SessionManager, Session], Awaitable[Session]],
) -> Session:
    """Do something to the session that `ref` names, and return what it is then."""

    async def work(manager: SessionManager) -> Session:
        return await change(manager, await find(manager, ref))

    return with_sessions(config, data, work)


def _agreed(question: str, ref: str, yes: bool, config: Path | None, data: Path | None) -> Session:
    """Return the session that `ref` names once a person has said yes; a no ends the command."""
    if not yes and not sys.stdin.isatty():
        raise Refused("expected --yes, since there is no terminal to ask on")
    session = with_sessions(config, data, lambda manager: find(manager, ref))
    if not yes:
        what = f"{cell(tables.name(session))} ({session.key}, rows: {session.message_count})"
        # Outside the loop, where Ctrl-C ends the question at once.
        typer.confirm(question.format(what), abort=True, err=True)
    return session
