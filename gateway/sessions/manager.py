"""The one session manager all channels share.

Every verb is a transaction of the store, durable when it returns, so there is nothing to flush, and thousands of idle
chats cost nothing; what replays of the sessions used last were made of is kept, within a bound. Usable alone:

    count = O200kCounter()
    async with open_store("sqlite:///chats.db", clock=SystemClock(), make_id=make_id, count=count) as store:
        manager = SessionManager(store.sessions, count)
        session = await manager.open(SessionKey("api", "42"))
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.domain.errors import Refused
from gateway.domain.keys import SessionKey
from gateway.domain.message import Kind, Mark, Message, Role
from gateway.domain.origins import Origin
from gateway.domain.replay.pipeline import Replay, Terms
from gateway.domain.retention import Retention, recent_legal_suffix
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource, edited_title
from gateway.ports.sessions import Found, NewSession, SessionPage, SessionQuery, Sessions
from gateway.ports.tokens import TokenCounter
from gateway.sessions.replays import Replays

PAGE = 200
"""Rows read at a time where somebody pages through them."""
LARGEST_PAGE = 1_000
"""Rows read at a time where all are wanted."""

_LAST_ROW = 1 << 62
_FRESH = NewSession()


class SessionManager:
    """Finds, lists, searches, names, shortens, forks, closes and replays sessions.

    A session is named by its id, or where a key will do by its key (the open one). Verbs raise `NotFound` for a session
    that is not there and `Refused` for input that cannot be.
    """

    def __init__(self, sessions: Sessions, count: TokenCounter) -> None:
        """Keep sessions in `sessions`; `count` counts what a replay adds to rows, as the store counts the rows."""
        self._sessions = sessions
        self._replays = Replays(sessions, count)

    async def open(self, key: SessionKey, new: NewSession = _FRESH) -> Session:
        """Return the open session of a key, made from `new` if there is none."""
        return await self._sessions.open(key, new)

    async def get(self, ref: str | SessionKey) -> Session:
        """Return a header; nothing changes by looking."""
        return await self._sessions.get(ref)

    async def beginning(self, prefix: str, *, limit: int = 10) -> Sequence[Session]:
        """Return sessions whose id begins with `prefix`, the newest first."""
        return await self._sessions.beginning(prefix, limit=limit)

    async def rows(
        self, session_id: str, *, before: int | None = None, after: int | None = None, limit: int = PAGE
    ) -> Sequence[Message]:
        """Return rows in order, marks attached: the newest below `before`, or the first above `after`."""
        return await self._sessions.page(session_id, before=before, after=after, limit=limit)

    async def append(self, session_id: str, rows: Sequence[Message]) -> Sequence[Message]:
        """Append rows outside of any turn and return them with their places, durable when it returns."""
        return await self._sessions.append(session_id, rows)

    async def attic(self, session_id: str, *, after: int = 0, limit: int = PAGE) -> Sequence[Message]:
        """Return rows that were moved out of the live ones, in order."""
        return await self._sessions.attic(session_id, after=after, limit=limit)

    async def list(self, query: SessionQuery | None = None) -> SessionPage:
        """Return a page of headers, pinned first, then the newest."""
        return await self._sessions.list(query or SessionQuery())

    async def search(self, words: str, *, limit: int = 20) -> Sequence[Found]:
        """Return titles and rows that hold all the words, the best match first."""
        return await self._sessions.search(words, limit=limit)

    async def replay(self, session_id: str, terms: Terms) -> Replay:
        """Return what a model is sent of the session under these terms, whose `begin` is the session's own.

        It begins where the last one did as long as that fits the budget; where it begins now is stored.
        """
        return await self._replays.replay(session_id, terms)

    async def explain(self, session_id: str, terms: Terms) -> Replay:
        """Return what would be sent, and of every row that would not be, why; nothing changes by asking."""
        return await self._replays.explain(session_id, terms)

    async def rename(self, session_id: str, title: str) -> Session:
        """Give the session a title of somebody's own, which nothing replaces but another one."""
        await self._sessions.set_title(session_id, edited_title(title), TitleSource.EDITED)
        return await self._sessions.get(session_id)

    async def pin(self, session_id: str, pinned: bool = True) -> Session:
        """Keep the session at the top of lists, or no longer."""
        return await self._sessions.update(session_id, {"pinned": pinned})

    async def archive(self, session_id: str, archived: bool = True) -> Session:
        """Mark the session as archived, which hides it from ordinary lists and does nothing else, or take it back."""
        return await self._sessions.update(session_id, {"archived": archived})

    async def set_origin(self, session_id: str, origin: Origin) -> bool:
        """Say where the session came from; only the first time counts. Return whether it did."""
        return await self._sessions.set_origin(session_id, origin)

    async def mark(self, session_id: str, seqs: Sequence[int], mark: Mark) -> int:
        """Hide rows from replays and previews; return how many were not hidden so before."""
        return await self._sessions.mark(session_id, seqs, mark)

    async def close(self, key: SessionKey) -> Session | None:
        """End the open session of a key, so that the next message begins another. It stays listed and readable."""
        return await self._sessions.close(key)

    async def attach(self, session_id: str, key: SessionKey) -> Session:
        """Make the session the open one of a key, so that this chat goes on with it."""
        return await self._sessions.attach(session_id, key)

    async def delete(self, session_id: str) -> bool:
        """Erase the session. What a running turn still writes to it is refused. Return whether it was there."""
        return await self._sessions.delete(session_id)

    async def clear(self, session_id: str) -> int:
        """Empty the session: all rows go to the attic, and its summary with them. Return how many rows that were."""
        return await self._sessions.clear(session_id)

    async def retain_recent_legal_suffix(
        self, session_id: str, most: int, *, extend_to_user: bool = False
    ) -> Retention:
        """Keep the newest `most` rows live, from a place where a history may begin; the rest goes to the attic."""
        header = await self._sessions.get(session_id)
        result = recent_legal_suffix(
            await self.all_rows(session_id),
            most,
            consolidated_through=header.consolidated_through,
            extend_to_user=extend_to_user,
        )
        await self._sessions.retire(session_id, [row.seq for row in result.dropped], "retention")
        return result

    async def fork_before_user(self, session_id: str, index: int, key: SessionKey) -> Session:
        """Open a session under `key` with copies of what came before the user row number `index`, counted from 0.

        The number of user rows itself means all rows.
        """
        rows = await self.all_rows(session_id)
        # That an answer was stopped is nobody's message.
        asked = [row.seq for row in rows if row.role is Role.USER and row.kind is not Kind.INTERRUPTED]
        if not 0 <= index <= len(asked):
            raise Refused(f"expected the number of a user message from 0 to {len(asked)}, got {index}")
        before = asked[index] if index < len(asked) else _LAST_ROW
        return await self._sessions.fork(session_id, before, key)

    async def all_rows(self, session_id: str, *, after: int = 0) -> Sequence[Message]:
        """Return every live row above `after`, in order, however many there are."""
        rows: list[Message] = []
        while page := await self._sessions.page(session_id, after=after, limit=LARGEST_PAGE):
            rows += page
            after = page[-1].seq
            if len(page) < LARGEST_PAGE:
                break
        return rows
