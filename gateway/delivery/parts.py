"""Sending one part so that it is shown once, even if the process dies anywhere in between."""

from __future__ import annotations

from collections.abc import Sequence

from loguru import logger

from gateway.delivery.options import OnUncertain
from gateway.domain.errors import AuthFailed, Gone, NotDone
from gateway.domain.keys import Route
from gateway.domain.outbound import Outbound, Part, PartState, Ref, StoredPart
from gateway.domain.phrases import Phrases
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease
from gateway.ports.outbox import Outbox
from gateway.ports.patience import until_stored


class PartSender:
    """Brings parts from `wanted` to `done`. What a call did is written down before anything else is tried."""

    def __init__(self, outbox: Outbox, on_uncertain: OnUncertain, clock: Clock, phrases: Phrases) -> None:
        self._outbox = outbox
        self._clock = clock
        self._on_uncertain = on_uncertain
        self._phrases = phrases

    async def send(
        self, channel: Channel, to: Route, part: StoredPart, lease: Lease, siblings: Sequence[StoredPart]
    ) -> None:
        """Show the part; raise what the channel raises, with the part left in the state that it is truly in."""
        if part.state is PartState.DONE:
            return
        if part.state is PartState.OPEN:
            await self._done(part, lease, part.ref)
            return
        again = False
        if part.state is PartState.OPENING:
            certain, found = await self._look(channel, to, part, siblings)
            if found is not None:
                await self._done(part, lease, found)
                return
            if not certain:
                part, again = await self._uncertain(channel, part, lease)
        await self._post(channel, to, await self._outbox.opening(part, lease, again=again), lease)

    async def _look(
        self, channel: Channel, to: Route, part: StoredPart, siblings: Sequence[StoredPart]
    ) -> tuple[bool, Ref | None]:
        """Ask the platform whether a part that was in flight arrived; return whether the answer is certain, and it."""
        assert part.part is not None
        assert part.opening_since is not None
        # What only one person was shown stands in no history that could be searched.
        if not channel.capabilities.find or part.part.is_private:
            return False, None
        known = [sibling.ref for sibling in siblings if sibling.ref is not None]
        try:
            return True, await channel.find(to, part.key, part.opening_since, known)
        except AuthFailed as error:
            logger.bind(part=part.key, error=str(error)).warning("the platform may not be asked for what was sent")
            return False, None

    async def _uncertain(self, channel: Channel, part: StoredPart, lease: Lease) -> tuple[StoredPart, bool]:
        """Decide about a part of which nobody can say whether it was shown."""
        logger.bind(part=part.key, policy=self._on_uncertain.value).warning("a part may have been shown already")
        if self._on_uncertain is OnUncertain.RESEND:
            return part, True
        # Whoever alone was shown the part is alone shown the note.
        only_for = part.part.details.get("only_for") if part.part else None
        note = channel.render(Outbound(text=self._phrases.uncertain, only_for=only_for))[0]
        return await self._not_opened(part, lease, instead=note), False

    async def _post(self, channel: Channel, to: Route, part: StoredPart, lease: Lease) -> None:
        assert part.part is not None
        try:
            ref = await channel.post(to, part.part, part.key, live=False)
        except Gone:
            await self._done(part, lease, None)
        except NotDone as error:
            if error.formatting and not part.part.is_plain:
                await self._post_plain(channel, to, part, part.part, lease, error)
                return
            await self._not_opened(part, lease)
            raise
        except AuthFailed:
            await self._not_opened(part, lease)
            raise
        else:
            await self._done(part, lease, ref)

    async def _post_plain(
        self, channel: Channel, to: Route, part: StoredPart, refused: Part, lease: Lease, error: NotDone
    ) -> None:
        logger.bind(part=part.key, code=error.code).warning("the platform refused the formatting; sent plain")
        plain = await self._not_opened(part, lease, instead=refused.as_plain())
        await self._post(channel, to, await self._outbox.opening(plain, lease), lease)

    async def _not_opened(self, part: StoredPart, lease: Lease, instead: Part | None = None) -> StoredPart:
        return await until_stored(lambda: self._outbox.not_opened(part, lease, instead=instead), self._clock)

    async def _done(self, part: StoredPart, lease: Lease, ref: Ref | None) -> None:
        assert part.part is not None
        hash = part.part.hash
        await until_stored(lambda: self._outbox.done(part, lease, hash=hash, ref=ref), self._clock)
        logger.bind(part=part.key, message=ref.id if ref else None).debug("a part is shown")
