"""What a model would be sent of a stored session, and why not the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gateway.app.core import profiles
from gateway.app.sessions import find_session, open_existing
from gateway.config.settings import Settings
from gateway.domain.errors import Refused
from gateway.domain.replay.pipeline import Replay
from gateway.domain.session import Session
from gateway.domain.turn import Usage
from gateway.media.files import FileMedia
from gateway.model.router import Models
from gateway.sessions.manager import SessionManager
from gateway.store.opening import sqlite_path
from gateway.tokens.o200k import O200kCounter
from gateway.tools.none import NoTools
from gateway.turns.planning import Plan, Planner
from gateway.turns.reopening import WithMedia


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A replay as the next turn would make it, with what it was planned by."""

    session: Session
    plan: Plan
    replay: Replay
    latest: Usage | None
    """What its latest call cost."""


async def explain(
    settings: Settings, ref: str, *, model: str | None, budget: int | None, environment: Mapping[str, str]
) -> Explained:
    """Return what the session that `ref` names would be replayed as; nothing is sent and nothing changes.

    `model` and `budget` (in tokens) ask what it would be with another one.
    """
    if budget is not None and budget < 1:
        raise Refused(f"--budget: expected a number of tokens from 1, got {budget}")
    count = O200kCounter()
    async with open_existing(settings) as store:
        sessions = SessionManager(store.sessions, count)
        session = await find_session(sessions, ref)
        models = Models(settings.model, environment, count=count)
        planner = Planner(
            turns=store.turns, model=models, profiles=profiles(settings), count=count, options=settings.gateway
        )
        media = FileMedia(settings.media.folder(sqlite_path(settings.store.url)), store.media)
        plan = await planner.plan(session, await WithMedia(NoTools(), media).specs(session), model=model)
        if budget is not None:
            plan = replace(plan, terms=replace(plan.terms, budget=budget))
        return Explained(
            session=session,
            plan=plan,
            replay=await sessions.explain(session.id, plan.terms),
            latest=await store.turns.latest_usage(session.id),
        )
