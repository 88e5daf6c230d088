"""What a store holds that its owner should know of: turns set aside, deliveries that are late, damaged records."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gateway.app.doctor.findings import Finding, ok, spoken, warn, wrong
from gateway.app.sessions import has_channel, open_existing, reference
from gateway.config.kinds import is_terminal_name
from gateway.config.settings import Settings
from gateway.domain.errors import TrunklineError
from gateway.domain.outbound import Delivery, DeliveryState
from gateway.domain.redaction import redact
from gateway.domain.turn import Turn, TurnState
from gateway.store.opening import sqlite_path
from gateway.store.sqlite.connection import connect

TURNS = "turns set aside"
GIVEN_UP = "deliveries given up"
WAITING = "deliveries waiting"
DAMAGED = "damaged records"

MOST = 10_000
"""How many of a kind are counted."""
NEWEST_SHOWN = 5
PATIENCE = timedelta(minutes=10)
"""How long a delivery may wait before that is told; a platform's rate limit seldom takes as long."""

_SET_ASIDE = {
    "values of sessions": "SELECT count(*) FROM set_aside",
    "events that came in": "SELECT count(*) FROM inbox WHERE state = 'set aside'",
}


async def check_contents(settings: Settings, now: datetime, *, is_running: bool) -> Sequence[Finding]:
    """Look at what the store holds."""
    try:
        damaged = await asyncio.to_thread(_count_damaged, sqlite_path(settings.store.url))
        async with open_existing(settings) as store:
            turns = await store.turns.list(state=TurnState.SET_ASIDE, limit=MOST)
            dead = await store.outbox.list(state=DeliveryState.DEAD, limit=MOST)
            pending = await store.outbox.list(state=DeliveryState.PENDING, limit=MOST)
    except (TrunklineError, sqlite3.Error, TypeError, ValueError) as error:
        # Not every damage is met where it is read; whoever looks for it is told of it all the same.
        why = str(error) if isinstance(error, TrunklineError | sqlite3.Error) else "a record is damaged"
        todo = "Look at the log of the gateway. A disk that is full or fails shows there."
        return [wrong("contents of the store", f"cannot be read: {why}", todo)]
    late = [delivery for delivery in pending if now - delivery.created_at > PATIENCE]
    return [_turns(turns, now), _given_up(settings, dead, now), _waiting(settings, late, now, is_running), *damaged]


def _turns(turns: Sequence[Turn], now: datetime) -> Finding:
    if not turns:
        return ok(TURNS, "none")
    newest = spoken(now - turns[0].started_at)
    todo = (
        "Each ended the process twice, so it is not tried again, and its person was told the reference."
        " `trunkline sessions show ID` shows what was said; the log, or the system's own, why the process ended."
    )
    details = [
        {"begun": turn.started_at, "session": turn.key, "reference": reference(turn), "id": turn.session_id}
        for turn in turns[:NEWEST_SHOWN]
    ]
    return warn(TURNS, f"{_number(turns)}, the newest {newest} ago", todo, details)


def _given_up(settings: Settings, dead: Sequence[Delivery], now: datetime) -> Finding:
    if not dead:
        return ok(GIVEN_UP, "none")
    todo = "Mend what is told. They are not sent again; `trunkline sessions show REF` shows what was said all the same."
    details = [
        {"channel": channel, "count": len(those), "newest": those[0].created_at, "why": _why(settings, those[0])}
        for channel, those in _by_channel(dead).items()
    ]
    return warn(GIVEN_UP, f"{_number(dead)}, the newest {spoken(now - dead[0].created_at)} old", todo, details)


def _waiting(settings: Settings, late: Sequence[Delivery], now: datetime, is_running: bool) -> Finding:
    limit = spoken(PATIENCE)
    if not late:
        return ok(WAITING, f"none for longer than {limit}")
    todo = "They go out by themselves once their platform takes them; `/ready` and the log of the gateway tell more."
    if not is_running:
        todo = "No gateway runs: `trunkline run` starts it, and what can go out does so."
    details = [
        {"channel": channel, "count": len(those), "oldest": those[-1].created_at, "why": _why(settings, those[-1])}
        for channel, those in _by_channel(late).items()
    ]
    found = f"{_number(late)} for longer than {limit}, the oldest for {spoken(now - late[-1].created_at)}"
    return warn(WAITING, found, todo, details)


def _why(settings: Settings, delivery: Delivery) -> str:
    """Return why a delivery was not shown, as far as that is known; never a word of it, and no secret."""
    if delivery.state is DeliveryState.PENDING and not has_channel(settings, delivery.route.channel):
        return "no channel of this name is enabled here"
    if delivery.error:
        return redact(delivery.error, settings.secrets())
    return "that terminal is not open" if is_terminal_name(delivery.route.channel) else ""


def _by_channel(deliveries: Sequence[Delivery]) -> Mapping[str, Sequence[Delivery]]:
    """Return the deliveries of each channel, in the order they came in."""
    found: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        found.setdefault(delivery.route.channel, []).append(delivery)
    return found


def _count_damaged(path: Path) -> Sequence[Finding]:
    """Count what could not be read and was put aside as it was, so that the rest went on."""
    with closing(connect(path, read_only=True)) as connection:
        counts = {what: int(connection.execute(sql).fetchone()[0]) for what, sql in _SET_ASIDE.items()}
    if not any(counts.values()):
        return [ok(DAMAGED, "none")]
    todo = (
        "The rest goes on without them, and nothing has to be done. If there are ever more of them, look at the disk."
    )
    details: list[Mapping[str, Any]] = [{"what": what, "count": number} for what, number in counts.items() if number]
    return [warn(DAMAGED, f"{sum(counts.values())} could not be read and were put aside", todo, details)]


def _number(found: Sequence[object]) -> str:
    return str(len(found)) if len(found) < MOST else f"{MOST} or more"
