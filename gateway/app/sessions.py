"""The stored sessions, for a command beside a running gateway.

No lock is needed: every verb is one transaction, and a gateway that runs meanwhile meets what it did in its next one.
The store is only opened, never made, so that a mistyped directory is told and not filled.
"""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from gateway.app.channels import options_by_kind
from gateway.config.kinds import TERMINAL, is_terminal_name
from gateway.config.load import load_settings
from gateway.config.settings import Settings
from gateway.domain.errors import InvalidKey, NotFound, Refused, Unavailable
from gateway.domain.keys import SessionKey
from gateway.domain.message import Message, Role
from gateway.domain.scrub import words_of
from gateway.domain.session import Session
from gateway.domain.text import last_cut, one_line
from gateway.domain.turn import Turn, TurnState
from gateway.ports.sessions import SessionQuery, Sessions
from gateway.sessions.manager import SessionManager
from gateway.store.nanobot.keys import session_key
from gateway.store.opening import Store, open_store, sqlite_path
from gateway.tokens.o200k import O200kCounter
from gateway.wakeups.clock import SystemClock

SHORTEST_REF = 6
"""How much of an id names its session; less would too often name several."""

PAGE = 1_000
CANDIDATES_SHOWN = 5
FIRST_WORDS = 60
"""Characters of what was said that tell one turn from another."""
REFERENCE = 8
"""How much of a turn's id its person was told."""
TERMINAL_LABEL = "terminal"
"""What a list calls the place of a session that began in a terminal."""

_AGO = re.compile(r"([0-9]{1,6})([mhdw])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelCount:
    """How much a channel holds; `message_count` counts live rows, `updated_at` is when it was last used."""

    channel: str
    updated_at: datetime
    sessions: int = 0
    open: int = 0
    closed: int = 0
    pinned: int = 0
    archived: int = 0
    message_count: int = 0

    def plus(self, session: Session) -> ChannelCount:
        """Return the count with one more session."""
        is_closed = session.closed_at is not None
        return replace(
            self,
            sessions=self.sessions + 1,
            open=self.open + (not is_closed),
            closed=self.closed + is_closed,
            pinned=self.pinned + session.pinned,
            archived=self.archived + session.archived,
            message_count=self.message_count + session.message_count,
            updated_at=max(self.updated_at, session.updated_at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A turn that was set aside: when it began, the reference its person was told, and how what was said begins."""

    begun_at: datetime
    reference: str
    words: str


def read_settings(config: Path | None, data: Path | None, environment: Mapping[str, str]) -> Settings:
    """Return the settings as `run` would have them; nothing is made on the disk.

    No token of a channel is needed: it may stand in the environment of the gateway alone.
    """
    return load_settings(config, environment, options_by_kind(), data, need_channels=False)


def has_channel(settings: Settings, name: str) -> bool:
    """Return whether a gateway with these settings has a channel of this name, be it a terminal's."""
    return name in settings.channels or name in settings.incomplete or is_terminal_name(name)


@asynccontextmanager
async def open_sessions(settings: Settings) -> AsyncIterator[Sessions]:
    """Open the sessions of a store that is there; raise `Refused` where there is none, and make nothing."""
    async with open_existing(settings) as store:
        yield store.sessions


@asynccontextmanager
async def open_existing(settings: Settings) -> AsyncIterator[Store]:
    """Open a store that is there; raise `Refused` where there is none, and make nothing."""
    check_is_there(sqlite_path(settings.store.url))
    clock, count = SystemClock(), O200kCounter()
    async with open_store(settings.store.url, clock=clock, make_id=_make_id, count=count) as store:
        yield store


def session_manager(sessions: Sessions) -> SessionManager:
    """Return the manager of these sessions, counting as the gateway does."""
    return SessionManager(sessions, O200kCounter())


async def find_session(manager: SessionManager, ref: str) -> Session:
    """Return the session of an id, of the beginning of one, or of a key, which means its open one.

    Raises `NotFound` if there is none, `Refused` for a beginning that is too short or that several ids share.
    """
    if ":" in ref:
        return await _of_key(manager, ref)
    with suppress(NotFound):
        return await manager.get(ref)
    if len(ref) < SHORTEST_REF:
        what = f"a session's id, the first {SHORTEST_REF} or more characters of one, or its key, written channel:chat"
        raise Refused(f"expected {what}, got {ref!r}; {await _way_to_find(manager, ref)}")
    found = await manager.beginning(ref, limit=CANDIDATES_SHOWN + 1)
    if not found:
        what = f"no session has an id that begins with {ref!r}, and a key is written channel:chat"
        raise NotFound(f"{what}; {await _way_to_find(manager, ref)}")
    if len(found) > 1:
        raise Refused(f"several sessions have an id that begins with {ref!r}: {_named(found)}")
    return found[0]


async def every_session(manager: SessionManager, query: SessionQuery | None = None) -> AsyncIterator[Session]:
    """Yield all headers, page by page, in the order of a list."""
    query = replace(query or SessionQuery(), limit=PAGE)
    while True:
        page = await manager.list(query)
        for session in page.sessions:
            yield session
        if page.next_cursor is None:
            return
        query = replace(query, cursor=page.next_cursor)


async def turns_set_aside(store: Store, session_id: str) -> Sequence[SetAside]:
    """Return the session's turns that were set aside, the newest first."""
    turns = await store.turns.list(state=TurnState.SET_ASIDE, session_id=session_id)
    return [
        SetAside(begun_at=turn.started_at, reference=reference(turn), words=await _first_words(store.sessions, turn))
        for turn in turns
    ]


def reference(turn: Turn) -> str:
    """Return what a person was told to name the turn by."""
    return turn.id[:REFERENCE]


async def count_by_channel(manager: SessionManager) -> list[ChannelCount]:
    """Return what each channel holds, in the order of their names."""
    counts: dict[str, ChannelCount] = {}
    async for session in every_session(manager):
        channel = session.key.channel
        none = ChannelCount(channel=channel, updated_at=session.updated_at)
        counts[channel] = counts.get(channel, none).plus(session)
    return [counts[channel] for channel in sorted(counts)]


def origin_kind(said: str) -> str:
    """Return the kind of a place as the store has it; a terminal is called one in lists, and is of the kind console."""
    return TERMINAL if said == TERMINAL_LABEL else said


def parse_since(text: str, now: datetime) -> datetime:
    """Return the moment that `7d` (also m, h and w) ago was, or that a date or time names, in UTC unless it says."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Refused(f"--since: expected 30m, 12h, 7d, 2w, or a date as 2026-11-01, got {text!r}") from None


async def _first_words(sessions: Sessions, turn: Turn) -> str:
    """Return how what was said in a turn begins, as one line that does nothing where it is shown."""
    rows = await sessions.page(turn.session_id, after=turn.first_seq - 1, limit=PAGE)
    # What was cleared since is in the attic.
    rows = _said(rows, turn) or _said(await sessions.attic(turn.session_id, after=turn.first_seq - 1, limit=PAGE), turn)
    text = one_line(" ".join(piece for row in rows for piece in (words_of(row), *_files(row)) if piece))
    return text if len(text) <= FIRST_WORDS else text[: last_cut(text, 0, FIRST_WORDS - 1)].rstrip() + "…"


def _said(rows: Sequence[Message], turn: Turn) -> Sequence[Message]:
    return [row for row in rows if row.turn_id == turn.id and row.role is Role.USER]


def _files(row: Message) -> Sequence[str]:
    return [f"[{file.kind} {file.name}".rstrip() + "]" for file in row.media]


async def _of_key(manager: SessionManager, ref: str) -> Session:
    """Return the open session of a key, which may also be spelled as nanobot does."""
    theirs = _nanobots(ref)
    try:
        return await manager.get(SessionKey.parse(ref))
    except InvalidKey:
        if theirs is None:
            raise
    except NotFound as error:
        if theirs is None:
            raise NotFound(f"{error}; one that is closed is named by its id") from error
    try:
        return await manager.get(theirs)
    except NotFound as error:
        raise NotFound(f"{error} ({ref} of nanobot); one that is closed is named by its id") from error


def _nanobots(ref: str) -> SessionKey | None:
    """Return our key for one that only nanobot spells so, as `cli:direct` or `telegram:-100:topic:17`."""
    if not (ref.startswith("cli:") or ":topic:" in ref):
        return None
    with suppress(InvalidKey):
        return session_key(ref)
    return None


async def _way_to_find(manager: SessionManager, ref: str) -> str:
    """Return the command that finds what a person may have meant by something that names no session."""
    if (await manager.list(SessionQuery(channel=ref, archived=False, limit=1))).sessions:
        return f"`trunkline sessions list --channel {ref}` lists those of that channel"
    is_searchable = ref.isprintable() and any(character.isalnum() for character in ref)
    return f"`trunkline sessions search {shlex.quote(ref) if is_searchable else 'WORDS'}` finds sessions by their words"


def _named(sessions: Sequence[Session]) -> str:
    shown = ", ".join(f"{session.id} ({session.key})" for session in sessions[:CANDIDATES_SHOWN])
    return f"{shown} and more" if len(sessions) > CANDIDATES_SHOWN else shown


def check_is_there(path: Path) -> None:
    """Raise `Refused` where there is no database, so that looking makes none."""
    try:
        # An empty file is what a store that was never opened looks like; opening it would make one.
        is_there = path.is_file() and path.stat().st_size > 0
    except OSError as error:
        raise Unavailable(f"cannot open the database {path}: {error.strerror}") from error
    if not is_there:
        raise Refused(f"there is no database at {path}; `trunkline run` makes it, --data names another directory")


def _make_id() -> str:
    return uuid.uuid4().hex
