"""Fixtures of the Telegram channel's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.channels.telegram.harness import SkippingClock
from tests.loopback.telegram import TelegramServer


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as server:
        yield server


@pytest.fixture
def clock() -> SkippingClock:
    return SkippingClock()
