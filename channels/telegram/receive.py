"""The receiving half: asks Telegram for updates, and moves past one only when it is stored.

Telegram forgets an update as soon as a higher offset is asked for. So the offset is the acknowledgement: it grows by
what the sink has taken, and nothing else. The updates are read as plain data and not by `Bot.get_updates`, which fails
as a whole over one update of a shape it does not know.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from loguru import logger
from telegram.error import Conflict, InvalidToken, TelegramError
from telegram.request import HTTPXRequest

from channels.telegram.events import ALLOWED_UPDATES, Dropped, read
from channels.telegram.failures import is_refused_token, refused_token
from channels.telegram.wire import Limited, Wire
from channels.telegram.words import Me
from gateway.domain.backoff import backoff
from gateway.domain.errors import Unavailable
from gateway.ports.channel import Sink
from gateway.ports.clock import Clock
from gateway.ports.vitals import Vitals

LONGEST_POLL_WAIT_SECONDS = 600.0
"""How long a wait that Telegram asks of the poller is obeyed; more would be deafness by a mistake of theirs."""
LONGEST_WAIT_SECONDS = 30.0
GRACE_SECONDS = 10.0
"""What a request for updates may take beyond the time that Telegram holds it open."""


class Poller:
    """Brings the updates of one bot in, in order."""

    def __init__(self, *, channel: str, me: Me, wire: Wire, poll_seconds: int, clock: Clock, vitals: Vitals) -> None:
        self._channel = channel
        self._me = me
        self._wire = wire
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._vitals = vitals
        self._log = logger.bind(channel=channel)
        self._offset: int | None = None
        self._failures = 0
        self._refusals = 0

    async def run(self, sink: Sink) -> None:
        """Poll until cancelled, or until Telegram refuses the token."""
        try:
            while True:
                await self._poll_over_one_client(sink)
        finally:
            self._vitals.is_deaf("does not receive")

    async def _poll_over_one_client(self, sink: Sink) -> None:
        """Poll until the connection fails: a new client has no broken or leaked connection in its pool."""
        request = self._wire.request(connections=2)
        try:
            while (wait := await self._round(request, sink)) is not None:
                await self._clock.sleep(min(wait, LONGEST_POLL_WAIT_SECONDS))
        finally:
            await request.shutdown()
        await self._clock.sleep(_pause(self._failures))

    async def _round(self, request: HTTPXRequest, sink: Sink) -> float | None:
        """Fetch once and hand all in; return the seconds to wait, or None if the client is to be replaced."""
        try:
            updates = await self._fetch(request)
        except Limited as error:
            self._failed("telegram asked to wait before the next request for updates", error)
            return error.seconds or _pause(self._failures)
        except Conflict as error:
            self._failed("another instance polls this bot, or a webhook is set for it", error)
            return _pause(self._failures)
        except (TelegramError, TimeoutError, LookupError, TypeError) as error:
            if isinstance(error, InvalidToken) and is_refused_token(error):
                raise refused_token() from error
            self._failed("telegram does not answer requests for updates", error)
            return None
        self._failures = 0
        self._vitals.hears(self._clock.now())
        return await self._hand_in(updates, sink)

    async def _fetch(self, request: HTTPXRequest) -> Sequence[Any]:
        query = {"timeout": self._poll_seconds, "allowed_updates": json.dumps(ALLOWED_UPDATES)}
        if self._offset is not None:
            query["offset"] = self._offset
        url = f"{self._wire.base_url}{self._wire.stand_in}/getUpdates?{urlencode(query)}"
        async with asyncio.timeout(self._poll_seconds + 2 * GRACE_SECONDS):
            updates = await request.post(url, read_timeout=self._poll_seconds + GRACE_SECONDS)
        if not isinstance(updates, list):
            raise TypeError("the answer to getUpdates is no list")
        return updates

    async def _hand_in(self, updates: Sequence[Any], sink: Sink) -> float:
        if not updates:
            # All before is confirmed. After a quiet week Telegram starts again at any number, perhaps a lower one.
            self._offset = None
        moved = not updates
        for raw in updates:
            if not await self._hand_in_one(raw, sink):
                return _pause(self._refusals)
            if (number := _number(raw)) is not None:
                self._offset, moved = number + 1, True
        return 0.0 if moved else LONGEST_WAIT_SECONDS

    async def _hand_in_one(self, raw: object, sink: Sink) -> bool:
        """Hand one update in; return whether it is done with."""
        inbound = read(raw, self._channel, self._me, self._clock.now())
        if isinstance(inbound, Dropped):
            self._vitals.count(f"dropped_{inbound.reason}")
            self._log.bind(update=_number(raw), reason=inbound.reason).debug("update dropped")
            return True
        try:
            await sink(inbound)
        except Unavailable as error:
            self._not_stored(raw, str(error))
            return False
        except Exception as error:  # the supervised boundary of this task: what was not stored comes again
            self._log.opt(exception=error).error("an update could not be handed in, by a fault of ours")
            self._not_stored(raw, type(error).__name__)
            return False
        self._refusals = 0
        self._vitals.came_in(self._clock.now())
        return True

    def _not_stored(self, raw: object, why: str) -> None:
        self._refusals += 1
        self._vitals.count("not_stored")
        self._log.bind(update=_number(raw), why=why).warning("update not stored; it will come again")

    def _failed(self, what: str, error: Exception) -> None:
        self._failures += 1
        self._vitals.is_deaf(what)
        self._vitals.count("poll_failed")
        self._log.bind(error=type(error).__name__, failures=self._failures).warning(what)


def _pause(failures: int) -> float:
    """Return how long to wait after so many failures in a row."""
    return backoff(failures - 1, longest=LONGEST_WAIT_SECONDS)


def _number(raw: object) -> int | None:
    number = raw.get("update_id") if isinstance(raw, dict) else None
    return number if isinstance(number, int) else None
