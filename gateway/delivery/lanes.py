"""The worker of lanes: one delivery after the other, part by part, each written down before and after it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from loguru import logger

from gateway.delivery.options import DeliveryOptions
from gateway.delivery.parts import PartSender
from gateway.domain.backoff import FIRST_SECONDS, LONGEST_SECONDS, backoff
from gateway.domain.errors import AuthFailed, LeaseLost, NotDone, Unavailable, Unknown, Unreachable
from gateway.domain.outbound import Delivery, Outbound, Part
from gateway.domain.phrases import Phrases
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease, Leases, held, lane_lease
from gateway.ports.outbox import Outbox
from gateway.ports.patience import until_stored
from gateway.ports.wakeups import Topic, Wakeups

MOST_PARTS = 50
"""How many messages one answer may become, at the most; a person is not to be buried."""


class Lanes:
    """Works lanes that were woken. A delivery that must wait keeps its lane waiting, and no other."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        leases: Leases,
        wakeups: Wakeups,
        channels: Mapping[str, Channel],
        clock: Clock,
        owner: str,
        lease_ttl: timedelta,
        options: DeliveryOptions,
        random: Callable[[], float],
        phrases: Phrases,
    ) -> None:
        self._outbox = outbox
        self._leases = leases
        self._wakeups = wakeups
        self._channels = channels
        self._clock = clock
        self._owner = owner
        self._ttl = lease_ttl
        self._options = options
        self._random = random
        self._phrases = phrases
        self._parts = PartSender(outbox, options.on_uncertain, clock, phrases)

    async def work(self, lane: str) -> None:
        """Send what is due in the lane; return at once if another works it."""
        lease = await self._leases.acquire(lane_lease(lane), self._owner, self._ttl)
        if lease is None:
            return
        try:
            async with held(self._leases, lease, self._ttl, self._clock) as holding:
                while delivery := await self._outbox.next(lane, lease):
                    channel = self._channels.get(delivery.route.channel)
                    if channel is None or not await self._deliver(channel, delivery, lease):
                        return
                    holding.is_given_back = await self._outbox.release_if_idle(lane, lease)
                    if holding.is_given_back:
                        return
        except LeaseLost:
            logger.bind(lane=lane).warning("the lane is worked elsewhere now; nothing more is written")

    async def _deliver(self, channel: Channel, delivery: Delivery, lease: Lease) -> bool:
        """Send one delivery; return whether the lane may go on with the next."""
        route = delivery.route
        about = {"session": str(route.key), "turn": delivery.turn_id, "channel": route.channel}
        with logger.contextualize(**about, delivery=delivery.id):
            try:
                await self._send(channel, delivery, lease)
            except LeaseLost:
                raise
            except (Unreachable, Unavailable, AuthFailed) as error:
                return await self._when_it_is_back(delivery, lease, str(error))
            except NotDone as error:
                return await self._not_done(delivery, lease, error)
            except Unknown as error:
                return await self._retry(delivery, lease, str(error))
            except Exception as error:  # the supervised boundary of a delivery: it is kept, and tried again
                logger.exception("a delivery failed by a fault of ours")
                return await self._retry(delivery, lease, f"internal error ({type(error).__name__})")
            return True

    async def _send(self, channel: Channel, delivery: Delivery, lease: Lease) -> None:
        parts = delivery.parts
        if not parts:
            assert delivery.outbound is not None
            # A long text takes its time to be laid out, and others are not to wait for it.
            rendered = await asyncio.to_thread(self._rendered, channel, delivery.outbound)
            if not rendered:
                await self._outbox.dead(delivery.id, lease, "there is nothing to show")
                return
            parts = tuple(await self._outbox.save_parts(delivery.id, lease, rendered))
        for part in parts:
            await self._parts.send(channel, delivery.route, part, lease, parts)
        logger.bind(parts=len(parts)).info("delivered")

    def _rendered(self, channel: Channel, outbound: Outbound) -> Sequence[Part]:
        """Render, and bound the number of messages that one answer may become."""
        rendered = channel.render(outbound)
        if len(rendered) <= MOST_PARTS:
            return rendered
        logger.bind(parts=len(rendered)).warning("an answer of too many messages is cut off")
        return [*rendered[: MOST_PARTS - 1], channel.render(Outbound(text=self._phrases.cut_off))[0]]

    async def _not_done(self, delivery: Delivery, lease: Lease, error: NotDone) -> bool:
        if error.fatal:
            return await self._give_up(delivery, lease, error.code)
        if error.retry_after is None:
            return await self._retry(delivery, lease, error.code)
        # A rate limit is the platform's own deadline, not a failure: it uses up no attempt.
        return await self._wait(delivery, lease, error.code, error.retry_after, is_failure=False)

    async def _when_it_is_back(self, delivery: Delivery, lease: Lease, why: str) -> bool:
        """Wait for a platform that is away or refuses our token; that is no fault of the delivery, and may last."""
        waited = (self._clock.now() - delivery.created_at).total_seconds()
        if waited >= self._options.patience_hours * 3600:
            return await self._give_up(delivery, lease, why)
        # The longer it has waited the less often it is tried: after a tenth of its age, a second to a minute.
        seconds = min(max(waited / 10, FIRST_SECONDS), LONGEST_SECONDS) * (0.5 + self._random() / 2)
        return await self._wait(delivery, lease, why, seconds, is_failure=False)

    async def _retry(self, delivery: Delivery, lease: Lease, why: str) -> bool:
        if delivery.attempts + 1 >= self._options.max_attempts:
            return await self._give_up(delivery, lease, why)
        seconds = backoff(delivery.attempts, self._random())
        return await self._wait(delivery, lease, why, seconds, is_failure=True)

    async def _give_up(self, delivery: Delivery, lease: Lease, why: str) -> bool:
        logger.bind(why=why).error("a delivery was given up")
        await until_stored(lambda: self._outbox.dead(delivery.id, lease, why), self._clock)
        return True

    async def _wait(self, delivery: Delivery, lease: Lease, why: str, seconds: float, *, is_failure: bool) -> bool:
        until = self._clock.now() + timedelta(seconds=seconds)
        logger.bind(why=why, seconds=round(seconds, 1)).warning("a delivery waits")
        await until_stored(
            lambda: self._outbox.defer(delivery.id, lease, until, why, is_failure=is_failure), self._clock
        )
        await self._wakeups.wake(Topic.LANE, delivery.route.lane, at=until)
        return False
