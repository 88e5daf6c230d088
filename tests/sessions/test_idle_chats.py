"""Thousands of idle chats cost nothing: all that is known of them is in the store."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from gateway.app.core import Core, open_core
from gateway.app.working import working
from gateway.config.load import load_settings
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.policy import Rules
from gateway.domain.session import Session
from gateway.ports.sessions import SessionQuery
from tests.fakes import FakeChannel
from tests.stores import message

CHATS, CHATS_PROVING = 500, 5000
AT_ONCE = 50


@pytest.mark.timeout(900)
async def test_thousands_of_chats_with_one_message_each_leave_nothing_in_memory(tmp_path: Path, proving: bool) -> None:
    chats = CHATS_PROVING if proving else CHATS
    channel = FakeChannel()
    rules = {"fake": Rules(people=frozenset({"*"}))}
    settings = load_settings(None, {}, {}, tmp_path)
    elsewhere = _headers_in_memory()
    async with open_core(settings, {"fake": channel}, name="test", environment={}, extra_rules=rules) as core:
        await core.receivers.open()
        async with working(core):
            for first in range(0, chats, AT_ONCE):
                numbers = range(first, first + AT_ONCE)
                await asyncio.gather(*(core.intake(_hello(number)) for number in numbers))
                await core.wakeups.idle()
            assert len(channel.shown) == chats
            channel.shown.clear()
            _nothing_is_kept(core, chats, elsewhere)
            page = await core.store.sessions.list(SessionQuery(limit=chats + 1))
            assert len(page.sessions) == chats
            assert {session.message_count for session in page.sessions} == {2}


def _hello(number: int) -> Inbound:
    return message("hello", number, route=Route("fake", f"C{number}"))


def _headers_in_memory() -> int:
    gc.collect()
    return sum(isinstance(one, Session) for one in gc.get_objects())


def _nothing_is_kept(core: Core, chats: int, elsewhere: int) -> None:
    wakeups = core.wakeups
    for kept in (wakeups._waiting, wakeups._running, wakeups._timers, wakeups._receivers):
        assert not kept
    # What other tests in this process hold on to is not ours.
    assert _headers_in_memory() <= elsewhere
    rounds = core.dispatcher._runner._rounds
    parts = (core.intake, core.attention, core.strays, core.dispatcher, rounds._asker._planner, core.lanes)
    for part in (*parts, core.titler, core.sweep, core.receivers, core.store.sessions, core.store.turns):
        for name, value in vars(part).items():
            assert not (hasattr(value, "__len__") and len(value) > chats / 10), name
