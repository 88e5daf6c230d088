"""The contract of a store of sessions: headers, rows, marks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What a session starts with when its key has no open one."""

    workspace: str = ""
    agent: str = ""
    model: str = ""
    mode: str = ""
    origin: Origin | None = None
    parent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionQuery:
    """Which sessions to list. `cursor` is the `next_cursor` of the page before; None fields do not filter."""

    channel: str | None = None
    origin_kind: str | None = None
    workspace: str | None = None
    pinned: bool | None = None
    archived: bool | None = None
    closed: bool | None = None
    since: datetime | None = None
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A page of headers, pinned first, then newest first; `next_cursor` is None on the last page."""

    sessions: Sequence[Session]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A row that matches a search, or a session whose title does (`seq` is None), with the words around the match."""

    session: Session
    seq: int | None
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A row of the attic: why and when it was moved out of the live ones."""

    row: Message
    reason: str
    moved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCopy:
    """A whole session to be carried elsewhere: its header, its rows with their places and marks, and its attic."""

    session: Session
    rows: Sequence[Message] = ()
    attic: Sequence[Retired] = ()


class Restored(StrEnum):
    """What became of a copy that was put into a store."""

    ADDED = "added"
    ADDED_CLOSED = "added as closed"
    KNOWN = "known"
    DELETED = "deleted here"


UPDATABLE = frozenset(
    {
        "workspace", "agent", "model", "mode", "extra_roots", "grants", "pinned", "archived",
        "consolidated_through", "replay_from", "compaction", "metadata",
    }
)  # fmt: skip
"""The fields of a header that `Sessions.update` may name; the rest belong to the store or are set once."""


class Sessions(ABC):
    """Keeps sessions. Safe to share between tasks; each verb is one transaction.

    A deleted session is a tombstone: it is not found by any verb, and writes to it are refused.
    """

    @abstractmethod
    async def open(self, key: SessionKey, new: NewSession) -> Session:
        """Return the open session of `key`, made from `new` if there is none. At most one is open per key."""

    @abstractmethod
    async def get(self, ref: str | SessionKey) -> Session:
        """Return the session with this id, or the open one of this key; raise `NotFound` if there is none."""

    @abstractmethod
    async def beginning(self, prefix: str, *, limit: int = 10) -> Sequence[Session]:
        """Return sessions whose id begins with `prefix`, the newest first."""

    @abstractmethod
    async def page(
        self, session_id: str, *, before: int | None = None, after: int | None = None, limit: int = 200
    ) -> Sequence[Message]:
        """Return rows in order of `seq`, marks attached: the newest `limit` below `before`, or the first above `after`.

        With neither, the newest of all. Empty if there are none. Raises `Refused` if both are given.
        """

    @abstractmethod
    async def append(self, session_id: str, rows: Sequence[Message]) -> Sequence[Message]:
        """Append rows outside of any turn (an import, a note, a library's own use) and return them with their places.

        What a turn says is written by `Turns`, under its lease.
        """

    @abstractmethod
    async def update(self, session_id: str, patch: Mapping[str, Any]) -> Session:
        """Set the named header fields and nothing else; raise `Refused` for a name outside `UPDATABLE`."""

    @abstractmethod
    async def set_origin(self, session_id: str, origin: Origin) -> bool:
        """Set the origin if there is none yet; return whether it was set."""

    @abstractmethod
    async def set_title(self, session_id: str, title: str, source: TitleSource) -> bool:
        """Set the title unless it has one of a higher source; return whether it was set."""

    @abstractmethod
    async def try_title(self, session_id: str, most: int) -> bool:
        """Count an attempt to generate a title; return False, and count none, after `most` or where it has one."""

    @abstractmethod
    async def mark(self, session_id: str, seqs: Sequence[int], mark: Mark) -> int:
        """Hide rows; return how many got the mark that did not have it. Seqs that do not exist are ignored."""

    @abstractmethod
    async def retire(self, session_id: str, seqs: Sequence[int], reason: str) -> int:
        """Move rows to the attic, where they are kept and not replayed; return how many were moved.

        Rows of a turn that still runs stay.
        """

    @abstractmethod
    async def clear(self, session_id: str) -> int:
        """Move all rows to the attic and forget the summary of them; return how many were moved.

        Rows of a turn that still runs stay.
        """

    @abstractmethod
    async def attic(self, session_id: str, *, after: int = 0, limit: int = 200) -> Sequence[Message]:
        """Return the first rows of the attic above `after`, in order of seq."""

    @abstractmethod
    async def close(self, key: SessionKey, *, only: str | None = None) -> Session | None:
        """Close the open session of `key` and return it, or None if none was open. Its rows stay.

        With `only`, nothing happens unless the open session is the one of that id.
        """

    @abstractmethod
    async def fork(self, session_id: str, before: int, key: SessionKey) -> Session:
        """Open a session under `key` holding copies of the rows below seq `before`, with their marks.

        Raises `Refused` if `key` has an open session. What is bound to the old one's progress is left behind.
        """

    @abstractmethod
    async def attach(self, session_id: str, key: SessionKey, *, closing: str | None = None) -> Session:
        """Make the session the open one of `key`, so that this chat goes on with it; return it.

        The session with the id `closing` is closed for it, if that is the open one of `key`. Raises `Refused`, and
        closes none, if any other is, or while a turn of this session runs or is to come.
        """

    @abstractmethod
    async def copy(self, session_id: str) -> SessionCopy:
        """Return everything that is kept of the session, as it is at one moment."""

    @abstractmethod
    async def restore(self, copy: SessionCopy) -> Restored:
        """Add a session with the id, times, places and marks of the copy, all of it or nothing.

        A long one is written in parts, between which others write; until all of it is there, nobody sees any of it.

        Where the id is known already, or was deleted here, nothing happens. Where another session is open under its
        key, the copy is added as closed when it was last used. Rows without a token count are counted; a missing title
        and preview are made of the rows.
        """

    @abstractmethod
    async def discard_unfinished(self, session_id: str) -> None:
        """Remove what a restore of this session left that was cut off, and nothing else; `restore` does so by itself.

        Until then no file can be kept for the session. Another restore of it that goes on elsewhere is ended.
        """

    @abstractmethod
    async def would_restore(self, copy: SessionCopy) -> Restored:
        """Return what `restore` would make of the copy now, and change nothing."""

    @abstractmethod
    async def delete(self, session_id: str) -> bool:
        """Make the session a tombstone and drop its rows; return whether it was there."""

    @abstractmethod
    async def list(self, query: SessionQuery) -> SessionPage:
        """Return one page of headers."""

    @abstractmethod
    async def search(self, words: str, *, limit: int = 20) -> Sequence[Found]:
        """Return sessions whose title holds all the words, then rows that do, the best match first.

        A word is found whole; one that ends in `*` stands for all that begin so, and nothing else in a word is syntax.
        In scripts without spaces, and in Hangul, any run of characters is found, whatever spaces or marks are between
        them. Letter case and accents do not matter. Hidden rows and deleted sessions are left out. Raises `Refused` for
        a text without a word.
        """
