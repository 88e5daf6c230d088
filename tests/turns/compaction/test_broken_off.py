"""A compaction that something else comes in between of: what was stored is known to be, and told once."""

from __future__ import annotations

import asyncio

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.phrases import ENGLISH
from gateway.ports.wakeups import Signal
from tests.turns.conftest import Rig
from tests.turns.summing import model, talk


async def test_a_message_that_interrupts_while_a_summary_is_stored_does_not_undo_what_is_known_of_it(rig: Rig) -> None:
    rig.modes = BusyModes(default=Busy.INTERRUPT)
    rig.build()
    await talk(rig, 8)
    original, once = rig.store.turns.consolidate, [True]

    async def consolidate(*args: object, **more: object) -> None:
        storing = asyncio.ensure_future(original(*args, **more))  # type: ignore[arg-type]
        if once:
            once.pop()
            await rig.say("and this?", 2_000)
        await storing

    rig.store.turns.consolidate = consolidate  # type: ignore[method-assign]
    await rig.turn("/compact", 999)
    assert (await rig.sent()).count(ENGLISH.compacted) == 1
    assert "compaction failed" not in rig.told()
    assert (await rig.sent())[-1] == "answer to and this?"


async def test_a_message_that_interrupts_while_a_question_is_put_leaves_the_turn_waiting(rig: Rig) -> None:
    rig.modes = BusyModes(default=Busy.INTERRUPT)
    rig.owners = frozenset({"U1"})
    rig.build()
    model(rig).fails = lambda: True
    original, once = rig.store.turns.suspend, [True]

    async def suspend(*args: object, **more: object) -> None:
        storing = asyncio.ensure_future(original(*args, **more))  # type: ignore[arg-type]
        if once:
            once.pop()
            await rig.wakeups.signal(args[0].session_id, Signal.INPUT)  # type: ignore[attr-defined]
        await storing

    rig.store.turns.suspend = suspend  # type: ignore[method-assign]
    for n in range(100, 160):
        await rig.turn(f"q{n} " + "word " * 20, n)
        if not once:
            break
    assert rig.told()[-1] == "waiting"
