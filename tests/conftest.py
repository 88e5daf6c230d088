"""What all tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.media import FileMedia
from gateway.store import Store
from tests.clock import ManualClock
from tests.media.rig import file_media
from tests.stores import open_engine


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--prove", action="store_true", help="run the full counts of kills and soaks")


@pytest.fixture(scope="session")
def proving(request: pytest.FixtureRequest) -> bool:
    """Whether the full counts are wanted."""
    return bool(request.config.getoption("--prove"))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """A store by the embedded defaults."""
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        yield store


@pytest.fixture
def media(tmp_path: Path, store: Store) -> FileMedia:
    """A media directory beside it."""
    return file_media(tmp_path, store)
