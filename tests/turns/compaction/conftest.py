"""A rig whose model sums up and has a small window."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.media.files import FileMedia
from tests.clock import ManualClock
from tests.stores import open_engine
from tests.turns.conftest import OPEN, OneRule, Rig
from tests.turns.summing import Summing


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with open_engine("sqlite", tmp_path, clock) as store:
        yield Rig(store, clock, Summing(window=1_100), OneRule(OPEN), FileMedia(tmp_path / "media", store.media))
