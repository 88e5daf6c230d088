"""The parts of a gateway wired together: what `run` and `chat` have in common."""

from __future__ import annotations

import random
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from loguru import logger

from gateway.app.policy import ConfiguredPolicy
from gateway.app.receivers import Receivers
from gateway.app.turning import Turning
from gateway.config.settings import Settings
from gateway.delivery.lanes import Lanes
from gateway.domain.busy import Busy, BusyModes
from gateway.domain.policy import Rules
from gateway.domain.session import Session
from gateway.events.recent import RecentEvents
from gateway.media.files import FileMedia
from gateway.model.router import Models
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock
from gateway.ports.leases import Leases
from gateway.ports.model import Model
from gateway.ports.observer import Observer
from gateway.ports.policy import Policy
from gateway.ports.tokens import TokenCounter
from gateway.ports.tools import Tools
from gateway.ports.wakeups import Wakeups
from gateway.store.opening import Store, open_store, sqlite_path
from gateway.tokens.o200k import O200kCounter
from gateway.tools.none import NoTools
from gateway.turns.dispatcher import Dispatcher
from gateway.turns.intake import Intake
from gateway.turns.presence import Attention
from gateway.turns.profile import Profile, Profiles
from gateway.turns.strays import Strays
from gateway.turns.sweep import Sweep
from gateway.turns.titler import Titler
from gateway.wakeups.clock import SystemClock
from gateway.wakeups.local import LocalWakeups

GATEWAY = "gateway"
"""The name of the one process that runs the channels."""

Ended = Callable[[str], None]
"""Told the name of a channel that has no more input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A wired gateway, not yet running."""

    settings: Settings
    store: Store
    model: Model
    clock: Clock
    wakeups: LocalWakeups
    events: RecentEvents
    intake: Intake
    attention: Attention
    strays: Strays
    dispatcher: Dispatcher
    titler: Titler
    lanes: Lanes
    sweep: Sweep
    receivers: Receivers


def lock_path(settings: Settings, name: str) -> Path:
    """Return the lock file of a process of this name, beside the database however its path is written."""
    path = sqlite_path(settings.store.url).resolve()
    return path.with_name(f"{path.name}.{name}.lock")


def check_models(settings: Settings, environment: Mapping[str, str]) -> None:
    """Raise `Refused` or `AuthFailed` if a model that the settings name cannot be used; nothing is sent."""
    models = Models(settings.model, environment, count=O200kCounter())
    named = {
        settings.model.default,
        settings.model.fallback,
        settings.gateway.compaction_model,
        *(one.model for one in settings.channels.values()),
    }
    for model in sorted(name for name in named if name):
        models.check(model)


@asynccontextmanager
async def open_core(
    settings: Settings,
    channels: Mapping[str, Channel],
    *,
    name: str,
    environment: Mapping[str, str],
    clock: Clock | None = None,
    ended: Ended = lambda name: None,
    extra_rules: Mapping[str, Rules] | None = None,
    mend: bool = False,
    tools: Tools | None = None,
) -> AsyncIterator[Core]:
    """Wire a gateway for these channels. The caller holds the lock of `name`, so what that name left behind is dead.

    `mend` has the store checked for damage first, as after a process that was killed.
    """
    clock = clock or SystemClock()
    count = O200kCounter()
    wiring = _Wiring(
        settings=settings, clock=clock, count=count, owner=f"{name}:{secrets.token_hex(4)}", tools=tools or NoTools()
    )
    async with AsyncExitStack() as stack:
        url = settings.store.url
        store = await stack.enter_async_context(open_store(url, clock=clock, make_id=_make_id, count=count, mend=mend))
        await _free_dead_leases(store.leases, name)
        model = Models(settings.model, environment, count=count)
        stack.push_async_callback(model.close)
        rules = {**{one.name: one.rules for one in settings.channels.values()}, **(extra_rules or {})}
        core = wiring.core(store, model, channels, ConfiguredPolicy(rules), ended)
        stack.push_async_callback(core.receivers.close)
        yield core


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiring:
    """What most parts of a gateway need."""

    settings: Settings
    clock: Clock
    count: TokenCounter
    owner: str
    tools: Tools

    @property
    def lease_ttl(self) -> timedelta:
        return timedelta(seconds=self.settings.gateway.lease_seconds)

    def core(self, store: Store, model: Model, channels: Mapping[str, Channel], policy: Policy, ended: Ended) -> Core:
        wakeups = LocalWakeups(self.clock)
        events = RecentEvents(self.clock)
        opened: dict[str, Channel] = {}
        turning = self.turning(store, model, wakeups, opened, events)
        intake = turning.intake(policy, {name: channel.capabilities for name, channel in channels.items()})
        sweep = self.sweep(store, wakeups, opened)
        receivers = Receivers(
            channels,
            opened=opened,
            sink=intake,
            clock=self.clock,
            random=random.random,
            ended=ended,
            can_send=sweep.soon,
        )
        return Core(
            settings=self.settings,
            store=store,
            model=model,
            clock=self.clock,
            wakeups=wakeups,
            events=events,
            intake=intake,
            attention=turning.attention,
            strays=turning.strays,
            dispatcher=turning.dispatcher(self.owner, lease_ttl=self.lease_ttl),
            titler=Titler(sessions=store.sessions, model=model, profiles=profiles(self.settings)),
            lanes=self.lanes(store, wakeups, opened),
            sweep=sweep,
            receivers=receivers,
        )

    def turning(
        self, store: Store, model: Model, wakeups: Wakeups, opened: Mapping[str, Channel], events: Observer
    ) -> Turning:
        return Turning(
            store=store,
            model=model,
            count=self.count,
            clock=self.clock,
            wakeups=wakeups,
            channels=opened,
            media=self.media(store),
            most_bytes=self.settings.media.max_file_bytes,
            tools=self.tools,
            options=self.settings.gateway,
            profiles=profiles(self.settings),
            owners=self.owners,
            observer=events,
            modes=busy_modes(self.settings),
            phrases=self.settings.phrases,
        )

    def owners(self, channel: str) -> frozenset[str]:
        """Return who owns the bot in a channel; nobody in one that is not configured."""
        configured = self.settings.channels.get(channel)
        return configured.rules.owners if configured else frozenset()

    def media(self, store: Store) -> FileMedia:
        return FileMedia(self.settings.media.folder(sqlite_path(self.settings.store.url)), store.media)

    def lanes(self, store: Store, wakeups: Wakeups, opened: Mapping[str, Channel]) -> Lanes:
        return Lanes(
            outbox=store.outbox,
            leases=store.leases,
            wakeups=wakeups,
            channels=opened,
            clock=self.clock,
            owner=self.owner,
            lease_ttl=self.lease_ttl,
            options=self.settings.delivery,
            random=random.random,
            phrases=self.settings.phrases,
        )

    def sweep(self, store: Store, wakeups: Wakeups, opened: Mapping[str, Channel]) -> Sweep:
        return Sweep(
            turns=store.turns,
            outbox=store.outbox,
            media=self.media(store),
            wakeups=wakeups,
            channels=lambda: tuple(opened),
            clock=self.clock,
            seconds=self.settings.gateway.sweep_seconds,
        )


def busy_modes(settings: Settings) -> BusyModes:
    """Return what each chat does while it is answered.

    A terminal that nobody configured never lets a burst settle: what is piped into it ends with its answer.
    """
    configured, default = settings.channels.values(), settings.gateway.busy
    return BusyModes(
        default=Busy.QUEUE if default is Busy.BURST else default,
        by_channel={channel.name: channel.busy or settings.gateway.busy for channel in configured},
        by_chat={(channel.name, chat): mode for channel in configured for chat, mode in channel.busy_in.items()},
    )


def profiles(settings: Settings) -> Profiles:
    """Return the choice of profile: the session's own model, else its channel's, else the default."""

    def choose(session: Session) -> Profile:
        channel = settings.channels.get(session.key.channel)
        return Profile(
            model=session.model or (channel and channel.model) or settings.model.default,
            system_prompt=(channel and channel.system_prompt) or settings.gateway.system_prompt,
        )

    return choose


def _make_id() -> str:
    return uuid.uuid4().hex


async def _free_dead_leases(leases: Leases, name: str) -> None:
    dead = [lease for lease in await leases.holders() if lease.holder.startswith(f"{name}:")]
    for lease in dead:
        await leases.release(lease)
    if dead:
        logger.bind(leases=len(dead)).warning("the last process ended without notice; its work goes on here")
