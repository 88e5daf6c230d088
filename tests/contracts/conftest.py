"""The stores every contract suite of a store runs on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import ENGINES, open_engine


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    async with open_engine(request.param, tmp_path, clock) as store:
        yield store
