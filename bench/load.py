"""The gateway under load: what it adds to a message, how much it carries, and whether one chat holds up the others."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.arrivals import Arrivals, Told
from bench.bare import BARE, bare_transactions, percentile
from bench.null import NULL, running, said
from bench.row import Row
from bench.turns import Talk, once_each, talking
from gateway.domain.keys import SessionKey
from gateway.domain.turn import TurnState
from gateway.ports.sessions import NewSession

BARE_TRANSACTIONS = 1_000
CHATS_EACH = 4
"""Chats that take turns for one another, so that what is measured is the gateway and not the length of one history."""
LEAST_RATE = 400
"""Turns a second that two cores are to carry."""
STUCK = "stuck"
SETTLE_SECONDS = 0.5


async def measure_load(
    *, chats: int = 500, rate: float = 100, seconds: float = 15, at_once: int = 256, rounds: int = 8
) -> Sequence[Row]:
    """Measure messages that come at random moments, as many turns as can be had, and chats beside one that is stuck."""
    return [
        *await _overhead(chats, rate, int(rate * seconds)),
        *await _sustained(at_once, seconds),
        *await _beside_stuck(chats, rate, int(rate * seconds / rounds), rounds),
    ]


async def _overhead(chats: int, rate: float, messages: int) -> Sequence[Row]:
    names, told = [f"chat{number}" for number in range(chats)], Told()
    with tempfile.TemporaryDirectory() as folder:
        bare = list(bare_transactions(Path(folder) / "floor.db", BARE_TRANSACTIONS))
        async with running(Path(folder)) as (core, _):
            arrivals = Arrivals(core, names, rate=rate)
            # Most messages come to a chat that has a session already.
            await arrivals.hand_in(chats, Told())
            await arrivals.hand_in(messages, told)
        bare += bare_transactions(Path(folder) / "floor.db", BARE_TRANSACTIONS)
    what = f"accepted to finished, {rate:g} messages a second in {chats} chats"
    late = f"the same: how late a message is handed in (p99; {max(told.late) * 1000:.0f} ms at the most)"
    return [
        *(
            Row(
                name=f"{what} (p{share})",
                ours=percentile(told.overhead, share) * 1000,
                floor=percentile(bare, share) * 1000,
                unit="ms",
                floor_is=f"{BARE} (p{share})",
            )
            for share in (50, 99)
        ),
        Row(
            name=late,
            ours=percentile(told.late, 99) * 1000,
            floor=1000 / rate,
            unit="ms",
            floor_is="what is between two messages",
            at_most=1,
        ),
    ]


async def _sustained(at_once: int, seconds: float) -> Sequence[Row]:
    with tempfile.TemporaryDirectory() as folder:
        bare = list(bare_transactions(Path(folder) / "floor.db", BARE_TRANSACTIONS))
        async with talking(Path(folder)) as (channel, talk):
            await once_each(channel, talk, [_name(chat, turn) for chat in range(at_once) for turn in range(CHATS_EACH)])
            turns = await _turns_a_second(talk, at_once, seconds)
        bare += bare_transactions(Path(folder) / "floor.db", BARE_TRANSACTIONS)
    name = f"turns a second, finished and delivered, {at_once} chats at once"
    return [
        Row(name=name, ours=turns, floor=len(bare) / sum(bare), unit="/s", floor_is="bare durable transactions"),
        Row(
            name="the same: time that one of them takes",
            ours=1000 / turns,
            floor=1000 / LEAST_RATE,
            unit="ms",
            floor_is=f"what it may take, for {LEAST_RATE} a second",
            at_most=1,
        ),
    ]


async def _turns_a_second(talk: Talk, at_once: int, seconds: float) -> float:
    """Return how many answers are sent a second while so many chats wait for one at all times."""
    # The first second is not counted: everybody began at the same moment.
    begin = time.perf_counter() + min(seconds / 10, 1)
    end = begin + seconds
    delivered = 0

    async def talker(number: int) -> None:
        nonlocal delivered
        turn = 0
        while (now := time.perf_counter()) < end:
            delivered += turn > 0 and now >= begin
            await talk(_name(number, turn % CHATS_EACH))
            turn += 1

    await asyncio.gather(*(talker(number) for number in range(at_once)))
    return delivered / seconds


def _name(number: int, turn: int) -> str:
    return f"many{number}-{turn}"


async def _beside_stuck(chats: int, rate: float, messages: int, rounds: int) -> Sequence[Row]:
    names, without, beside = [f"chat{number}" for number in range(chats)], Told(), Told()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps([{"when": "How", "events": [{"delay": 86_400}]}]))
        async with running(Path(folder)) as (core, _):
            await core.store.sessions.open(SessionKey(NULL, STUCK), NewSession(model=f"scripted:{script}"))
            arrivals = Arrivals(core, names, rate=rate)
            await arrivals.hand_in(chats, Told())
            for _ in range(rounds):
                await arrivals.hand_in(messages, without)
                await core.intake(said(STUCK))
                await asyncio.sleep(SETTLE_SECONDS)
                await arrivals.hand_in(messages, beside)
                assert [turn.key.chat_id for turn in await core.store.turns.list(state=TurnState.RUNNING)] == [STUCK]
                await core.intake(said(STUCK, "/stop"))
                await asyncio.sleep(SETTLE_SECONDS)
    return [
        Row(
            name=f"accepted to finished, {rate:g} messages a second, beside a chat that is stuck (p{share})",
            ours=percentile(beside.overhead, share) * 1000,
            floor=percentile(without.overhead, share) * 1000,
            unit="ms",
            floor_is="without it",
            at_most=most,
        )
        # What else the machine does falls on either, and most on the slowest hundredth.
        for share, most in ((50, 1.2), (99, 1.5))
    ]
