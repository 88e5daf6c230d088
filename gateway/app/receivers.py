"""The receiving half of every channel: opened, run, and brought back when it falls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from loguru import logger

from gateway.domain.backoff import LONGEST_SECONDS, backoff
from gateway.domain.errors import AuthFailed, TrunklineError
from gateway.ports.channel import Channel, Health, Sink
from gateway.ports.clock import Clock


class Receivers:
    """Runs one task a channel. One that cannot be helped is red in `health` and leaves the others alone.

    `opened` is filled with the channels that can send now, and changes as they do; `can_send` is called for one more.
    """

    def __init__(
        self,
        channels: Mapping[str, Channel],
        *,
        opened: dict[str, Channel],
        sink: Sink,
        clock: Clock,
        random: Callable[[], float],
        ended: Callable[[str], None] = lambda name: None,
        can_send: Callable[[], None] = lambda: None,
    ) -> None:
        self._channels = channels
        self._sink = sink
        self._clock = clock
        self._random = random
        self._ended = ended
        self._can_send = can_send
        self._troubles: dict[str, str] = {}
        self._ended_channels: set[str] = set()
        self._opened = opened

    def health(self) -> dict[str, Health]:
        """Return how each channel is, but for those whose input has ended."""
        return {name: self._health(name) for name in self._channels if name not in self._ended_channels}

    def _health(self, name: str) -> Health:
        trouble = self._troubles.get(name)
        return Health(receiving=False, detail=trouble) if trouble else self._channels[name].health()

    async def open(self) -> None:
        """Open every channel now, and raise what is wrong with one, rather than trying again while running."""
        for name, channel in self._channels.items():
            await channel.open()
            self._opened[name] = channel

    async def run(self) -> None:
        """Receive on every channel until cancelled. Channels stay open, for what is still to be sent."""
        async with asyncio.TaskGroup() as group:
            for name, channel in self._channels.items():
                group.create_task(self._keep(name, channel), name=f"receive {name}")

    async def close(self) -> None:
        """Close every channel that was opened, whatever the others do."""
        async with AsyncExitStack() as stack:
            for channel in self._opened.values():
                stack.push_async_callback(channel.close)
            self._opened.clear()

    async def _keep(self, name: str, channel: Channel) -> None:
        failures = 0
        while True:
            began = self._clock.now()
            try:
                await self._once(name, channel)
            except AuthFailed as error:
                self._troubles[name] = str(error)
                logger.bind(channel=name).error(
                    f"{name} is off until it is set right and the gateway started anew: {error}"
                )
                return
            except Exception as error:  # the supervised boundary of a receiver: it is brought back
                if (self._clock.now() - began).total_seconds() > LONGEST_SECONDS:
                    failures = 0
                await self._wait(name, error, failures)
                failures += 1
            else:
                self._ended_channels.add(name)
                logger.bind(channel=name).info("the channel has ended")
                self._ended(name)
                return

    async def _wait(self, name: str, error: Exception, failures: int) -> None:
        seconds = backoff(failures, self._random())
        report = logger.bind(channel=name, seconds=round(seconds, 1))
        if isinstance(error, TrunklineError):
            self._troubles[name] = str(error)
            report.warning(f"{name} cannot receive, trying again: {error}")
        else:
            self._troubles[name] = type(error).__name__
            report.exception(f"{name} fell by a fault of ours, trying again")
        await self._clock.sleep(seconds)

    async def _once(self, name: str, channel: Channel) -> None:
        if name not in self._opened:
            await channel.open()
            self._opened[name] = channel
            self._can_send()
        self._troubles.pop(name, None)
        await channel.receive(self._sink)
