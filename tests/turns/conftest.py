"""Intake, dispatcher and runner on a real store, with a fake model and a fake channel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.app.turning import Turning
from gateway.domain.busy import BusyModes
from gateway.domain.keys import Route
from gateway.domain.message import Message
from gateway.domain.phrases import ENGLISH, Phrases
from gateway.domain.policy import ANYONE, Rules
from gateway.media.files import FileMedia
from gateway.ports.channel import Capabilities, Channel
from gateway.ports.media import Media
from gateway.ports.observer import Event, EventFilter, Observer
from gateway.ports.policy import Policy
from gateway.ports.tools import Tools
from gateway.store import Store
from gateway.tools.none import NoTools
from gateway.turns.dispatcher import Dispatcher
from gateway.turns.options import GatewayOptions
from gateway.turns.profile import Profile
from gateway.wakeups.local import LocalWakeups
from tests.clock import ManualClock
from tests.fakes import FakeModel
from tests.stores import ROUTE, count_words, message, open_engine

OPEN = Rules(people=frozenset({ANYONE}), chats=frozenset({ANYONE}))


class OneRule(Policy):
    """The same rules for every channel."""

    def __init__(self, rules: Rules) -> None:
        self.current = rules

    async def rules(self, channel: str) -> Rules:
        return self.current


class Listening(Observer):
    """Puts every event into a list."""

    def __init__(self, heard: list[Event]) -> None:
        self._heard = heard

    def emit(self, event: Event) -> None:
        self._heard.append(event)

    async def follow(self, after_id: int | None, filter: EventFilter) -> AsyncIterator[Event]:
        for event in self._heard:
            yield event


@dataclass
class Rig:
    """Everything between a channel's event and its outbox."""

    store: Store
    clock: ManualClock
    model: FakeModel
    policy: OneRule
    media: Media
    channels: dict[str, Channel] = field(default_factory=dict)
    owners: frozenset[str] = frozenset()
    options: GatewayOptions = field(default_factory=lambda: GatewayOptions(system_prompt="Be brief."))
    tools: Tools = field(default_factory=NoTools)

    modes: BusyModes = field(default_factory=BusyModes)
    phrases: Phrases = ENGLISH

    def __post_init__(self) -> None:
        self.wakeups = LocalWakeups(self.clock)
        self.capabilities = {"slack": Capabilities(private_notes=True), "telegram": Capabilities()}
        self.events: list[Event] = []
        self.build()

    def build(self) -> None:
        """Wire everything anew, after something of it was changed."""
        self.turning = self._turning()
        self.intake = self.turning.intake(self.policy, self.capabilities)
        self.dispatcher = self.new_dispatcher("one")

    def _turning(self) -> Turning:
        """Return the parts as the gateway wires them."""
        return Turning(
            store=self.store,
            model=self.model,
            count=count_words,
            clock=self.clock,
            wakeups=self.wakeups,
            channels=self.channels,
            media=self.media,
            most_bytes=10_000,
            tools=self.tools,
            options=self.options,
            profiles=lambda session: Profile(model="fake:one", system_prompt=self.options.system_prompt),
            owners=lambda channel: self.owners,
            observer=Listening(self.events),
            phrases=self.phrases,
            modes=self.modes,
        )

    def new_dispatcher(self, owner: str, *, max_concurrent: int = 8) -> Dispatcher:
        """Return the dispatcher of another process on the same store."""
        return self.turning.dispatcher(owner, lease_ttl=timedelta(seconds=30), max_concurrent=max_concurrent)

    def told(self) -> list[str]:
        """The kinds of the events so far, in order."""
        return [event.kind for event in self.events]

    async def say(self, text: str, n: int, *, route: Route = ROUTE) -> str:
        """Let a message in and return the id of its session."""
        await self.intake(message(text, n, route=route))
        return (await self.store.sessions.get(route.key)).id

    async def turn(self, text: str, n: int, *, route: Route = ROUTE) -> str:
        """Let a message in and run its turn; return the id of its session."""
        session_id = await self.say(text, n, route=route)
        await self.dispatcher.drive(session_id)
        return session_id

    async def rows(self, session_id: str) -> list[Message]:
        return list(await self.store.sessions.page(session_id))

    async def texts(self, session_id: str) -> list[str]:
        return [row.text for row in await self.rows(session_id)]

    async def sent(self) -> list[str]:
        """The texts of what is in the outbox, oldest first."""
        found = await self.store.outbox.list()
        return [delivery.outbound.text for delivery in reversed(found) if delivery.outbound]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with open_engine("sqlite", tmp_path, clock) as store:
        yield Rig(store, clock, FakeModel(), OneRule(OPEN), FileMedia(tmp_path / "media", store.media))


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds; the bound only guards against hanging for ever."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)
