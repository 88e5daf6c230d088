"""A store and a media directory beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.media import FileMedia
from gateway.store import Store
from tests.clock import ManualClock
from tests.media.rig import file_media
from tests.stores import open_engine


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        yield store


@pytest.fixture
def media(tmp_path: Path, store: Store) -> FileMedia:
    return file_media(tmp_path, store)
