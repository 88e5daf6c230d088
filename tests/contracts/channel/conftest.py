"""The rigs of the channel contract suite, and what the tests of both halves share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import pytest
from loguru import logger

from gateway.domain.inbound import Inbound
from gateway.domain.outbound import Outbound, Part
from tests.contracts.channel_rig import ChannelRig, PlatformRig
from tests.contracts.rigs.console import ConsoleRig
from tests.contracts.rigs.slack import SlackRig
from tests.contracts.rigs.telegram import TelegramRig

RIGS: dict[str, type[ChannelRig]] = {"slack": SlackRig, "telegram": TelegramRig, "console": ConsoleRig}
PLATFORMS = [name for name, rig in RIGS.items() if issubclass(rig, PlatformRig)]

on_platforms = pytest.mark.parametrize("rig", PLATFORMS, indirect=True)
"""For what only a platform can do: have shared chats, repeat itself, fail."""
everywhere = pytest.mark.parametrize(
    ("rig", "place"), [(name, place) for name, rig in RIGS.items() for place in rig.places], indirect=["rig"]
)
"""For each rig in each of its chats."""

HANG_SECONDS = 30
"""A guard against hanging: every wait ends as soon as what it waits for is there."""

KEY = "delivery-1.0"


def where(can: Callable[[type[ChannelRig]], bool]) -> pytest.MarkDecorator:
    """For the rigs that can do something."""
    return pytest.mark.parametrize("rig", [name for name, rig in RIGS.items() if can(rig)], indirect=True)


class Inbox:
    """A sink that remembers, and can be made to wait or to fail."""

    def __init__(self) -> None:
        self.taken: list[Inbound] = []
        self.entered = 0
        self.failures = 0
        self.free = asyncio.Event()
        self.free.set()

    async def __call__(self, inbound: Inbound) -> None:
        self.entered += 1
        await self.free.wait()
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the store is away")
        self.taken.append(inbound)

    def of(self, dedupe_key: str) -> list[Inbound]:
        return [inbound for inbound in self.taken if inbound.dedupe_key == dedupe_key]

    async def first(self, dedupe_key: str) -> Inbound:
        await eventually(lambda: self.of(dedupe_key))
        return self.of(dedupe_key)[0]

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]


async def eventually(true: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not true():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def receiving(rig: ChannelRig, inbox: Inbox) -> AsyncIterator[None]:
    """Open the channel and receive into the inbox; at the end both stop."""
    await rig.channel.open()
    task = asyncio.create_task(rig.channel.receive(inbox))
    try:
        yield
        if task.done():
            await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await rig.channel.close()


def one_part(rig: ChannelRig, text: str) -> Part:
    (part,) = rig.channel.render(Outbound(text=text))
    return part


class LogLines(logging.Handler):
    """Everything logged, by us or by a library, at any level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


@pytest.fixture
def logs() -> Iterator[list[str]]:
    handler, root = LogLines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    sink = logger.add(
        lambda message: handler.lines.append(str(message)),
        level=0,
        format="{message} {extra}",
        diagnose=True,
        catch=False,
    )
    yield handler.lines
    logger.remove(sink)
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture(params=RIGS)
async def rig(request: pytest.FixtureRequest, logs: list[str]) -> AsyncIterator[ChannelRig]:
    """Case K5: a rig whose tokens, whatever the test did, are in no log line of ours or of a library."""
    async with RIGS[request.param].running() as made:
        yield made
        secrets = made.secrets() if isinstance(made, PlatformRig) else []
    assert [line for line in logs if any(secret in line for secret in secrets)] == []


@pytest.fixture
async def opened(rig: ChannelRig) -> AsyncIterator[ChannelRig]:
    """A rig whose sending half works alone; nothing is received."""
    await rig.channel.open()
    yield rig
    await rig.channel.close()
