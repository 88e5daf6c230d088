"""What runs turns, wired together: intake at one end, the dispatcher at the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from gateway.commands.control import Control
from gateway.domain.busy import BusyModes
from gateway.domain.phrases import Phrases
from gateway.domain.session import Session
from gateway.ports.channel import Capabilities, Channel
from gateway.ports.clock import Clock
from gateway.ports.media import Media
from gateway.ports.model import Model
from gateway.ports.observer import Observer
from gateway.ports.policy import Policy
from gateway.ports.tokens import TokenCounter
from gateway.ports.tools import Tools
from gateway.ports.wakeups import Wakeups
from gateway.sessions.manager import SessionManager
from gateway.store.opening import Store
from gateway.turns.asking import Asker
from gateway.turns.choosing import Choosing
from gateway.turns.commanding import Commanding
from gateway.turns.compacting import Compactor
from gateway.turns.dispatcher import Dispatcher
from gateway.turns.endings import Endings
from gateway.turns.intake import Intake
from gateway.turns.listening import Listener
from gateway.turns.options import GatewayOptions
from gateway.turns.pictures import Pictures
from gateway.turns.planning import Planner
from gateway.turns.presence import Attention
from gateway.turns.profile import Profiles
from gateway.turns.reopening import WithMedia
from gateway.turns.rounds import Rounds
from gateway.turns.runner import Runner
from gateway.turns.settling import Settling
from gateway.turns.strays import Strays
from gateway.turns.summariser import Summariser
from gateway.turns.telling import Teller
from gateway.turns.titler import wants_title


@dataclass(frozen=True, kw_only=True)
class Turning:
    """What turns are run with. `channels` are those that can send now, as a mapping that changes."""

    store: Store
    model: Model
    count: TokenCounter
    clock: Clock
    wakeups: Wakeups
    channels: Mapping[str, Channel]
    media: Media
    most_bytes: int
    tools: Tools
    options: GatewayOptions
    profiles: Profiles
    owners: Callable[[str], Collection[str]]
    observer: Observer
    phrases: Phrases
    modes: BusyModes = field(default_factory=BusyModes)

    @cached_property
    def attention(self) -> Attention:
        """What shows that the bot is at work; whoever runs turns closes it at the end."""
        return Attention(self.channels, self.clock)

    @cached_property
    def strays(self) -> Strays:
        """What owns tools that do not end; whoever runs turns closes it at the end."""
        return Strays(self.clock)

    def intake(self, policy: Policy, capabilities: Mapping[str, Capabilities]) -> Intake:
        """Return the gate that everything comes in by."""
        control = Control(
            sessions=self.store.sessions,
            turns=self.store.turns,
            outbox=self.store.outbox,
            wakeups=self.wakeups,
            phrases=self.phrases,
        )
        return Intake(
            sessions=self.store.sessions,
            turns=self.store.turns,
            outbox=self.store.outbox,
            wakeups=self.wakeups,
            policy=policy,
            clock=self.clock,
            capabilities=capabilities,
            attention=self.attention,
            teller=self._teller,
            modes=self.modes,
            max_waiting=self.options.max_waiting,
            commands=control,
            resets=self.options.resets,
            phrases=self.phrases,
        )

    def dispatcher(self, owner: str, *, lease_ttl: timedelta, max_concurrent: int | None = None) -> Dispatcher:
        """Return what runs the turns of a process; `owner` names it in leases."""
        settling = Settling(
            turns=self.store.turns,
            sessions=self.store.sessions,
            wakeups=self.wakeups,
            clock=self.clock,
            modes=self.modes,
            settle=timedelta(seconds=self.options.burst_seconds),
        )
        return Dispatcher(
            turns=self.store.turns,
            leases=self.store.leases,
            runner=self._runner(),
            settling=settling,
            attention=self.attention,
            wakeups=self.wakeups,
            clock=self.clock,
            owner=owner,
            lease_ttl=lease_ttl,
            max_concurrent=max_concurrent or self.options.max_concurrent_turns,
        )

    @cached_property
    def _teller(self) -> Teller:
        return Teller(self.observer)

    def _wants_title(self, session: Session) -> bool:
        return self.options.titles and wants_title(session, self.model, self.profiles)

    def _runner(self) -> Runner:
        endings = Endings(
            turns=self.store.turns,
            wakeups=self.wakeups,
            clock=self.clock,
            phrases=self.phrases,
            teller=self._teller,
            wants_title=self._wants_title,
        )
        pictures = Pictures(
            sessions=self.store.sessions,
            turns=self.store.turns,
            media=self.media,
            channels=self.channels,
            clock=self.clock,
            most_bytes=self.most_bytes,
        )
        sessions = SessionManager(self.store.sessions, self.count)
        asker = self._asker(sessions, pictures)
        listener = self._listener(sessions, asker, pictures)
        return Runner(
            rounds=self._rounds(asker, listener),
            listener=listener,
            endings=endings,
            wakeups=self.wakeups,
            clock=self.clock,
            teller=self._teller,
            time_limit=timedelta(minutes=self.options.turn_minutes),
        )

    def _listener(self, sessions: SessionManager, asker: Asker, pictures: Pictures) -> Listener:
        commanding = Commanding(
            asker=asker, outbox=self.store.outbox, wakeups=self.wakeups, clock=self.clock, phrases=self.phrases
        )
        return Listener(
            turns=self.store.turns,
            sessions=sessions,
            asker=asker,
            choosing=self._choosing,
            commanding=commanding,
            pictures=pictures,
            tools=self._all_tools,
            clock=self.clock,
            modes=self.modes,
            teller=self._teller,
        )

    def _rounds(self, asker: Asker, listener: Listener) -> Rounds:
        return Rounds(
            turns=self.store.turns,
            asker=asker,
            listener=listener,
            tools=self._all_tools,
            strays=self.strays,
            teller=self._teller,
            max_rounds=self.options.max_rounds,
        )

    @cached_property
    def _all_tools(self) -> Tools:
        return WithMedia(self.tools, self.media)

    def _asker(self, sessions: SessionManager, pictures: Pictures) -> Asker:
        planner = Planner(
            turns=self.store.turns, model=self.model, profiles=self.profiles, count=self.count, options=self.options
        )
        compactor = Compactor(
            turns=self.store.turns,
            sessions=sessions,
            summariser=self._summariser(),
            count=self.count,
            clock=self.clock,
            options=self.options,
            choosing=self._choosing,
            teller=self._teller,
            phrases=self.phrases,
        )
        return Asker(sessions=sessions, model=self.model, planner=planner, pictures=pictures, compactor=compactor)

    def _summariser(self) -> Summariser:
        chosen = self.options.compaction_model
        return Summariser(turns=self.store.turns, model=self.model, count=self.count, clock=self.clock, chosen=chosen)

    @cached_property
    def _choosing(self) -> Choosing:
        return Choosing(
            turns=self.store.turns,
            sessions=self.store.sessions,
            clock=self.clock,
            options=self.options,
            owners=self.owners,
            phrases=self.phrases,
        )
