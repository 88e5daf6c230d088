"""What the tests of models share: the loopback server, and what was logged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from loguru import logger

from tests.loopback.models import ModelServer


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
def logged() -> Iterator[list[str]]:
    heard: list[str] = []
    handler = logger.add(lambda line: heard.append(f"{line.record['level'].name} {line.record['message']}"), level=0)
    yield heard
    logger.remove(handler)
