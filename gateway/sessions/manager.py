"""The one session manager all channels share: it reads as much of a session as a replay needs, and no more."""

from __future__ import annotations

from gateway.domain.message import Message, Role
from gateway.domain.replay import Replay, build
from gateway.domain.session import Session
from gateway.ports.sessions import Sessions

PAGE = 200
"""Rows read at a time."""


class SessionManager:
    """Replays sessions from a store. Keeps nothing in memory between calls, so thousands of idle chats cost nothing."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def get(self, session_id: str) -> Session:
        """Return the header of a session; raise `NotFound`."""
        return await self._sessions.get(session_id)

    async def replay(self, session: Session, *, budget: int) -> Replay:
        """Return what a model with room for `budget` tokens is sent of the session."""
        return build(await self._newest(session, budget), budget=budget)

    async def _newest(self, session: Session, budget: int) -> list[Message]:
        rows: list[Message] = []
        before: int | None = None
        spent = 0
        # A turn with a long run of tool rounds can fill a budget by itself: go on until its question is there too.
        while spent <= budget or not any(row.role is Role.USER for row in rows):
            page = await self._sessions.page(session.id, before=before, limit=PAGE)
            rows = [*page, *rows]
            spent += sum(row.tokens or 0 for row in page)
            if len(page) < PAGE:
                break
            before = page[0].seq
        return rows
