"""A gateway that takes messages in and does not answer must not go on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.app.core import Core, open_core
from gateway.app.working import first, until, working
from gateway.config.load import load_settings
from tests.fakes import FakeChannel


async def test_work_that_falls_is_told_at_once_and_raised_at_the_end(tmp_path: Path) -> None:
    settings = load_settings(None, {}, {}, tmp_path)
    async with open_core(settings, {"fake": FakeChannel()}, name="test", environment={}) as core:
        with pytest.raises(ZeroDivisionError):
            await _run_until_it_falls(core)


async def _run_until_it_falls(core: Core) -> None:
    async def falls(handlers: object) -> None:
        raise ZeroDivisionError

    core.wakeups.run = falls  # type: ignore[method-assign]
    async with working(core) as fallen:
        await asyncio.wait_for(fallen.wait(), 30)


async def test_the_first_to_end_ends_the_others_and_its_fault_is_raised() -> None:
    never = asyncio.Event()
    cancelled: list[str] = []

    async def waits() -> None:
        try:
            await never.wait()
        except asyncio.CancelledError:
            cancelled.append("waits")
            raise

    async def falls() -> None:
        await asyncio.sleep(0)
        raise KeyError("x")

    with pytest.raises(KeyError):
        await first(waits(), falls(), until(never))
    assert cancelled == ["waits"]
