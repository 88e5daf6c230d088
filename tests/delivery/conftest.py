"""A lane worker on a real store, with a fake channel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.delivery.lanes import Lanes
from gateway.delivery.options import DeliveryOptions, OnUncertain
from gateway.domain.keys import Route
from gateway.domain.phrases import ENGLISH
from gateway.ports.channel import Capabilities
from gateway.store import Store
from gateway.wakeups.local import LocalWakeups
from tests.clock import ManualClock
from tests.fakes import FakeChannel
from tests.stores import delivery, open_engine

TTL = timedelta(seconds=30)
ROUTE = Route("fake", "1")


@dataclass
class Rig:
    """Everything a delivery goes through."""

    store: Store
    clock: ManualClock
    channel: FakeChannel
    lanes: Lanes

    async def send(self, *texts: str, route: Route = ROUTE) -> None:
        """Enqueue texts and work the lane once."""
        await self.store.outbox.enqueue([delivery(text, hash((text, route)), route=route) for text in texts])
        await self.work(route)

    async def work(self, route: Route = ROUTE) -> None:
        await self.lanes.work(route.lane)

    def new_process(self, *, can_find: bool = False, on_uncertain: OnUncertain = OnUncertain.RESEND) -> None:
        """Replace the worker, as a restart does; the platform stays as it is."""
        self.channel.capabilities = Capabilities(find=can_find)
        self.lanes = make_lanes(self.store, self.clock, self.channel, on_uncertain)


def make_lanes(store: Store, clock: ManualClock, channel: FakeChannel, on_uncertain: OnUncertain) -> Lanes:
    return Lanes(
        outbox=store.outbox,
        leases=store.leases,
        wakeups=LocalWakeups(clock),
        channels={channel.name: channel},
        clock=clock,
        owner="test",
        lease_ttl=TTL,
        options=DeliveryOptions(on_uncertain=on_uncertain, max_attempts=4),
        random=lambda: 1.0,
        phrases=ENGLISH,
    )


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock, channel = ManualClock(), FakeChannel(part_size=4)
    async with open_engine("sqlite", tmp_path, clock) as store:
        yield Rig(store, clock, channel, make_lanes(store, clock, channel, OnUncertain.RESEND))
