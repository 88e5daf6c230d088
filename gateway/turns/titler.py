"""Naming a session by one short question to its model, after its first answer and never before it."""

from __future__ import annotations

from collections.abc import Sequence

from loguru import logger

from gateway.domain.errors import TrunklineError
from gateway.domain.message import Kind, Message, Role
from gateway.domain.session import Session
from gateway.domain.titles import TITLE_PROMPT, TitleSource, generated_title
from gateway.ports.model import Model, ModelRequest
from gateway.ports.sessions import Sessions
from gateway.turns.profile import Profiles

MOST_ATTEMPTS = 2
MAX_OUTPUT = 64
ROWS_SHOWN = 8
CHARACTERS_SHOWN = 500
"""How much of each of the first rows the model is shown."""


def wants_title(session: Session, model: Model, profiles: Profiles) -> bool:
    """Whether a session has no title but its first line, and a model that could make one."""
    return session.title_source < TitleSource.GENERATED and model.info(profiles(session).model).writes


class Titler:
    """Gives sessions titles. A failure costs the title, and nothing else."""

    def __init__(self, *, sessions: Sessions, model: Model, profiles: Profiles) -> None:
        self._sessions = sessions
        self._model = model
        self._profiles = profiles

    async def title(self, session_id: str) -> None:
        """Title the session, unless it has a title of its own or was tried twice."""
        try:
            await self._title(await self._sessions.get(session_id))
        except TrunklineError as error:
            logger.bind(session_id=session_id, error=str(error)).warning("no title could be made")

    async def _title(self, session: Session) -> None:
        if not wants_title(session, self._model, self._profiles):
            return
        model = self._profiles(session).model
        rows = await self._sessions.page(session.id, after=0, limit=ROWS_SHOWN)
        if not await self._sessions.try_title(session.id, MOST_ATTEMPTS):
            return
        request = ModelRequest(
            model=model,
            system=TITLE_PROMPT,
            messages=[Message(role=Role.USER, content=_shown(rows))],
            max_output=MAX_OUTPUT,
        )
        if (title := generated_title(await self._model.complete(request))) is not None:
            await self._sessions.set_title(session.id, title, TitleSource.GENERATED)


def _shown(rows: Sequence[Message]) -> str:
    spoken = (row for row in rows if row.kind is Kind.CHAT and not row.marks and row.text.strip())
    return "\n\n".join(
        f"{row.role.value}: {row.text[:CHARACTERS_SHOWN]}" for row in spoken if row.role in (Role.USER, Role.ASSISTANT)
    )
