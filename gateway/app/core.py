"""The parts of a gateway wired together: what `run` and `chat` have in common."""

from __future__ import annotations

import random
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from loguru import logger

from gateway.app.policy import ConfiguredPolicy
from gateway.app.receivers import Receivers
from gateway.config.settings import Settings
from gateway.delivery.lanes import Lanes
from gateway.domain.policy import Rules
from gateway.domain.session import Session
from gateway.model.router import Models
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock
from gateway.ports.leases import Leases
from gateway.ports.model import Model
from gateway.sessions.manager import SessionManager
from gateway.store.opening import Store, open_store, sqlite_path
from gateway.tokens.o200k import O200kCounter
from gateway.tools.none import NoTools
from gateway.turns.dispatcher import Dispatcher
from gateway.turns.intake import Intake
from gateway.turns.profile import Profile, Profiles
from gateway.turns.runner import Runner
from gateway.turns.sweep import Sweep
from gateway.turns.titler import Titler
from gateway.wakeups.clock import SystemClock
from gateway.wakeups.local import LocalWakeups

DATABASE = "trunkline.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A wired gateway, not yet running."""

    settings: Settings
    store: Store
    model: Model
    clock: Clock
    wakeups: LocalWakeups
    intake: Intake
    dispatcher: Dispatcher
    titler: Titler
    lanes: Lanes
    sweep: Sweep
    receivers: Receivers


def store_url(settings: Settings) -> str:
    """Return the URL of the store: the one that is set, or a file in the data directory."""
    return settings.store.url or f"sqlite:///{settings.data / DATABASE}"


def lock_path(settings: Settings, name: str) -> Path:
    """Return the lock file of a process of this name, beside the database."""
    path = sqlite_path(store_url(settings))
    return path.with_name(f"{path.name}.{name}.lock")


@asynccontextmanager
async def open_core(
    settings: Settings,
    channels: Mapping[str, Channel],
    *,
    name: str,
    environment: Mapping[str, str],
    clock: Clock | None = None,
    ended: Callable[[str], None] = lambda name: None,
    extra_rules: Mapping[str, Rules] | None = None,
) -> AsyncIterator[Core]:
    """Wire a gateway for these channels. The caller holds the lock of `name`, so what that name left behind is dead."""
    clock = clock or SystemClock()
    count = O200kCounter()
    owner = f"{name}:{secrets.token_hex(4)}"
    async with open_store(store_url(settings), clock=clock, make_id=lambda: uuid.uuid4().hex, count=count) as store:
        await _free_dead_leases(store.leases, name)
        model = Models(settings.model, environment, count=count)
        try:
            yield _wire(settings, channels, store, model, clock, owner, count, ended, extra_rules or {})
        finally:
            await model.close()


def _wire(
    settings: Settings,
    channels: Mapping[str, Channel],
    store: Store,
    model: Model,
    clock: Clock,
    owner: str,
    count: O200kCounter,
    ended: Callable[[str], None],
    extra_rules: Mapping[str, Rules],
) -> Core:
    wakeups = LocalWakeups(clock)
    ttl = timedelta(seconds=settings.gateway.lease_seconds)
    rules = {**{name: channel.rules for name, channel in settings.channels.items()}, **extra_rules}
    intake = Intake(
        sessions=store.sessions,
        turns=store.turns,
        outbox=store.outbox,
        wakeups=wakeups,
        policy=ConfiguredPolicy(rules),
        clock=clock,
        capabilities={name: channel.capabilities for name, channel in channels.items()},
        resets=settings.gateway.resets,
    )
    receivers = Receivers(channels, sink=intake, clock=clock, random=random.random, ended=ended)
    runner = Runner(
        turns=store.turns,
        sessions=SessionManager(store.sessions),
        model=model,
        tools=NoTools(),
        wakeups=wakeups,
        profiles=profiles(settings),
        count=count,
        options=settings.gateway,
    )
    dispatcher = Dispatcher(
        turns=store.turns,
        leases=store.leases,
        runner=runner,
        clock=clock,
        owner=owner,
        lease_ttl=ttl,
        max_concurrent=settings.gateway.max_concurrent_turns,
    )
    lanes = Lanes(
        outbox=store.outbox,
        leases=store.leases,
        wakeups=wakeups,
        channels=receivers.opened,
        clock=clock,
        owner=owner,
        lease_ttl=ttl,
        options=settings.delivery,
        random=random.random,
    )
    sweep = Sweep(
        turns=store.turns,
        outbox=store.outbox,
        wakeups=wakeups,
        channels=lambda: tuple(receivers.opened),
        clock=clock,
        seconds=settings.gateway.sweep_seconds,
    )
    return Core(
        settings=settings,
        store=store,
        model=model,
        clock=clock,
        wakeups=wakeups,
        intake=intake,
        dispatcher=dispatcher,
        titler=Titler(sessions=store.sessions, model=model, profiles=profiles(settings)),
        lanes=lanes,
        sweep=sweep,
        receivers=receivers,
    )


def check_models(settings: Settings, environment: Mapping[str, str]) -> None:
    """Raise `Refused` or `AuthFailed` if a model that the settings name cannot be used; nothing is sent."""
    models = Models(settings.model, environment, count=O200kCounter())
    named = {
        settings.model.default,
        settings.model.fallback,
        *(channel.model for channel in settings.channels.values()),
    }
    for model in sorted(name for name in named if name):
        models.check(model)


def profiles(settings: Settings) -> Profiles:
    """Return the choice of profile: the session's own model, else its channel's, else the default."""

    def choose(session: Session) -> Profile:
        channel = settings.channels.get(session.key.channel)
        return Profile(
            model=session.model or (channel and channel.model) or settings.model.default,
            system_prompt=(channel and channel.system_prompt) or settings.gateway.system_prompt,
        )

    return choose


async def _free_dead_leases(leases: Leases, name: str) -> None:
    dead = [lease for lease in await leases.holders() if lease.holder.startswith(f"{name}:")]
    for lease in dead:
        await leases.release(lease)
    if dead:
        logger.bind(leases=len(dead)).warning("the last process ended without notice; its work goes on here")
