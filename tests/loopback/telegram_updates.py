"""The queue of updates of the loopback Telegram, with the rules of getUpdates."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.loopback.telegram_rules import Refusal

GUARD_SECONDS = 30
_CONFLICT = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
_WEBHOOK = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)


class UpdateQueue:
    """Hands updates out until a higher offset confirms them."""

    def __init__(self) -> None:
        self.pending: list[dict[str, Any]] = []
        self.confirmed_updates: list[dict[str, Any]] = []
        self.confirmed = 0
        self.polls = 0
        self.webhook = ""
        self._allowed: list[str] | None = None
        self._last_id = 1000
        self._polling: asyncio.Event | None = None
        """Set when a newer request takes the place of the one that waits."""
        self._is_time_up = False
        self._changed = asyncio.Condition()

    def next_id(self) -> int:
        """Return the id of the next update."""
        self._last_id += 1
        return self._last_id

    async def push(self, update: dict[str, Any]) -> None:
        """Queue an update; a kind that was not asked for is not sent, as by Telegram."""
        if self._allowed is None or any(kind in update for kind in self._allowed):
            self.pending.append(update)
        await self.notify()

    async def requeue(self) -> None:
        """Deliver all that was confirmed once more."""
        self.pending = [*self.confirmed_updates, *self.pending]
        self.confirmed_updates = []
        await self.notify()

    async def get_updates(self, params: Mapping[str, str]) -> list[dict[str, Any]]:
        """Answer one request: at once if there is something, else when there is or its time is up."""
        if self.webhook:
            raise Refusal(409, _WEBHOOK)
        if self._polling:
            self._polling.set()
        replaced = self._polling = asyncio.Event()
        if "allowed_updates" in params:
            self._allowed = json.loads(params["allowed_updates"]) or None
        self._confirm(int(params.get("offset") or 0))
        self.polls += 1
        self._is_time_up = False
        await self.notify()
        try:
            await self._wait(replaced, float(params.get("timeout") or 0))
        finally:
            if self._polling is replaced:
                self._polling = None
        return self.pending[: int(params.get("limit") or 100)]

    def set_webhook(self, params: Mapping[str, str]) -> bool:
        """Have updates sent to an address, so that nobody can ask for them."""
        self.webhook = params.get("url", "")
        return True

    def delete_webhook(self, params: Mapping[str, str]) -> bool:
        """Let updates be asked for again."""
        self.webhook = ""
        if params.get("drop_pending_updates") in ("true", "True", "1"):
            self.pending.clear()
        return True

    def webhook_info(self, params: Mapping[str, str]) -> dict[str, Any]:
        """Tell which address updates are sent to."""
        return {"url": self.webhook, "has_custom_certificate": False, "pending_update_count": len(self.pending)}

    async def _wait(self, replaced: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.pending or replaced.is_set() or self._is_time_up)
        except TimeoutError:
            pass
        if replaced.is_set():
            raise Refusal(409, _CONFLICT)

    async def end_poll(self) -> None:
        """Answer the request that waits with nothing, as when its time is up, and wait for the next one."""
        await self.until(lambda: self.is_polled, "the bot polls")
        polls, self._is_time_up = self.polls, True
        await self.notify()
        await self.until(lambda: self.polls > polls and self.is_polled, "the bot polls again")

    def _confirm(self, offset: int) -> None:
        if offset < 0:
            offset = self.pending[offset:][0]["update_id"] if self.pending else 0
        done = [update for update in self.pending if update["update_id"] < offset]
        self.confirmed_updates += done
        self.confirmed = max([self.confirmed, *(update["update_id"] for update in done)])
        self.pending = self.pending[len(done) :]

    @property
    def is_polled(self) -> bool:
        """Whether a request waits, with nothing to hand out."""
        return self._polling is not None and not self.pending

    async def notify(self) -> None:
        """Let all who wait look again."""
        async with self._changed:
            self._changed.notify_all()

    async def until(self, happened: Callable[[], bool], what: str) -> None:
        """Wait until something is so; a guard ends a wait that would be for ever."""
        try:
            async with asyncio.timeout(GUARD_SECONDS), self._changed:
                await self._changed.wait_for(happened)
        except TimeoutError:
            raise AssertionError(f"waited {GUARD_SECONDS} s in vain until {what}") from None
