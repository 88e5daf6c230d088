"""What a process leaves that is killed in a turn."""

from __future__ import annotations

from datetime import timedelta

from gateway.domain.keys import Route
from gateway.domain.message import Message
from gateway.ports.leases import session_lease
from tests.stores import ROUTE
from tests.turns.conftest import Rig


async def left_by_a_death(rig: Rig, text: str, n: int, *rows: Message, route: Route = ROUTE) -> str:
    """Leave a turn running that has stored these rows, and its lease free; return the id of its session."""
    session_id = await rig.say(text, n, route=route)
    await died_again(rig, session_id, *rows)
    return session_id


async def died_again(rig: Rig, session_id: str, *rows: Message) -> None:
    """Begin the session's turn and leave it, as a process does that dies over it."""
    lease = await rig.store.leases.acquire(session_lease(session_id), "dead", timedelta(seconds=30))
    assert lease is not None
    turn = await rig.store.turns.begin(session_id, lease)
    assert turn is not None
    if rows:
        await rig.store.turns.append_round(turn, lease, rows, None)
    await rig.store.leases.release(lease)
