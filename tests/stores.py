"""Opening stores for tests: one entry per engine, each on a place of its own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from pathlib import Path

from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.outbound import NewDelivery, Outbound
from gateway.ports.clock import Clock
from gateway.store import Store, open_store

ENGINES = ("sqlite",)
ALICE = Sender(id="U1", name="Alice")
ROUTE = Route("slack", "D1")
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def id_maker(prefix: str = "id") -> Callable[[], str]:
    """Return a maker of ids that count up."""
    numbers = itertools.count(1)
    return lambda: f"{prefix}{next(numbers):04d}"


def count_words(text: str) -> int:
    """A token counter for tests: one token a word."""
    return len(text.split())


def open_engine(
    engine: str, path: Path, clock: Clock, make_id: Callable[[], str] | None = None
) -> AbstractAsyncContextManager[Store]:
    """Open a store of this engine at a place; opening it again finds what was there."""
    assert engine == "sqlite"
    return open_store(f"sqlite:///{path / 'store.db'}", clock=clock, make_id=make_id or id_maker(), count=count_words)


def message(text: str, n: int, *, route: Route = ROUTE, at: datetime = NOON, sender: Sender = ALICE) -> Inbound:
    """Return a message with the dedupe key `n`."""
    return Inbound(
        kind=InboundKind.MESSAGE,
        route=route,
        dedupe_key=f"msg:{n}",
        sender=sender,
        sent_at=at,
        text=text,
        is_direct=True,
        addresses_bot=True,
    )


def delivery(text: str, n: int, *, route: Route = ROUTE) -> NewDelivery:
    """Return a delivery with the dedupe key `n`."""
    return NewDelivery(route=route, outbound=Outbound(text=text), dedupe_key=f"test:{n}")


StoreFixture = AsyncIterator[Store]
