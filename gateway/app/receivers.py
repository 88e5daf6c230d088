"""The receiving half of every channel: opened, run, and brought back when it falls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from loguru import logger

from gateway.delivery.backoff import backoff
from gateway.domain.errors import AuthFailed, TrunklineError
from gateway.ports.channel import Channel, Health, Sink
from gateway.ports.clock import Clock


class Receivers:
    """Runs one task a channel. One that cannot be helped is red in `health` and leaves the others alone."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        *,
        sink: Sink,
        clock: Clock,
        random: Callable[[], float],
        ended: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._channels = channels
        self._sink = sink
        self._clock = clock
        self._random = random
        self._ended = ended
        self._troubles: dict[str, str] = {}
        self._opened: dict[str, Channel] = {}

    @property
    def opened(self) -> Mapping[str, Channel]:
        """The channels that can send now; the same mapping as it changes."""
        return self._opened

    def health(self) -> dict[str, Health]:
        """Return how each channel is."""
        return {
            name: Health(receiving=False, detail=trouble) if (trouble := self._troubles.get(name)) else channel.health()
            for name, channel in self._channels.items()
        }

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
        """Close every channel that was opened."""
        for name in list(self._opened):
            channel = self._opened.pop(name)
            try:
                await channel.close()
            except TrunklineError as error:
                logger.bind(channel=name, error=str(error)).warning("a channel did not close well")

    async def _keep(self, name: str, channel: Channel) -> None:
        failures = 0
        while True:
            try:
                await self._once(name, channel)
            except AuthFailed as error:
                self._troubles[name] = str(error)
                logger.bind(channel=name).error(f"{name} is off until the owner helps: {error}")
                return
            except Exception as error:  # the supervised boundary of a receiver: it is brought back
                self._troubles[name] = str(error) if isinstance(error, TrunklineError) else type(error).__name__
                seconds = backoff(failures, self._random())
                failures += 1
                report = logger.bind(channel=name, seconds=round(seconds, 1))
                if isinstance(error, TrunklineError):
                    report.warning(f"{name} cannot receive, trying again: {error}")
                else:
                    report.exception(f"{name} fell by a fault of ours, trying again")
                await self._clock.sleep(seconds)
            else:
                logger.bind(channel=name).info("the channel has ended")
                self._ended(name)
                return

    async def _once(self, name: str, channel: Channel) -> None:
        if name not in self._opened:
            await channel.open()
            self._opened[name] = channel
        self._troubles.pop(name, None)
        await channel.receive(self._sink)
