"""Turns that were set aside, for the tests of commands that show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from gateway.domain.inbound import Inbound
from gateway.domain.turn import Turn, TurnState
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import Store
from tests.cli.shelf import Shelf
from tests.stores import delivery


def set_aside(shelf: Shelf, *events: Inbound) -> Turn:
    """Store a turn of these events that is set aside, with the note that its person gets."""
    return shelf.act(lambda store: _set_aside(store, events))


async def _set_aside(store: Store, events: Sequence[Inbound]) -> Turn:
    session_id = ""
    for event in events:
        session_id = await store.turns.accept(event, NewSession()) or ""
    lease = await store.leases.acquire(session_lease(session_id), "test", timedelta(seconds=30))
    assert lease is not None
    turn = await store.turns.begin(session_id, lease)
    assert turn is not None
    note = delivery("Sorry.", int(events[0].dedupe_key.rpartition(":")[2]), route=turn.route)
    await store.turns.fail(turn, lease, TurnState.SET_ASIDE, [note])
    await store.leases.release(lease)
    return turn
