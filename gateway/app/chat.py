"""`trunkline chat`: one terminal's own chat, alone or beside a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from gateway.app.channels import terminal_channel, terminal_rules
from gateway.app.core import Core, lock_path, open_core
from gateway.app.locks import only_process
from gateway.app.working import working
from gateway.config.settings import Settings
from gateway.domain.keys import check_channel_name
from gateway.domain.message import Role
from gateway.domain.outbound import Delivery, DeliveryState
from gateway.ports.sessions import SessionQuery
from gateway.wakeups.clock import SystemClock

CHANNEL = "chat"


async def run_chat(
    settings: Settings, name: str, *, environment: Mapping[str, str], stop: asyncio.Event, interactive: bool
) -> bool:
    """Chat until the input ends; return whether the last message was answered and the answer shown.

    Each name is a chat of its own, and belongs to one process at a time, so that an answer never comes out of another
    terminal. A piped input is one message.
    """
    channel_name = check_channel_name(f"{CHANNEL}-{name}" if name else CHANNEL)
    clock = SystemClock()
    channels = {channel_name: terminal_channel(channel_name, clock, one_message=not interactive)}
    what = f"the chat {name or 'without a name'}"
    with only_process(lock_path(settings, channel_name), what):
        async with open_core(
            settings,
            channels,
            name=channel_name,
            environment=environment,
            clock=clock,
            extra_rules=terminal_rules(channels),
        ) as core:
            await core.receivers.open()
            async with working(core):
                await _until_answered(core, channel_name, stop)
            return await _is_answered(core, channel_name)


async def _until_answered(core: Core, channel_name: str, stop: asyncio.Event) -> None:
    """First what an earlier process left, then the input to its end, then the answers to it; or until stopped."""
    stopped = asyncio.create_task(stop.wait(), name="stop")
    chatting = asyncio.create_task(_chat(core, channel_name), name="chat")
    try:
        await asyncio.wait((stopped, chatting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        chatting.cancel()
        await asyncio.gather(stopped, chatting, return_exceptions=True)


async def _chat(core: Core, channel_name: str) -> None:
    await core.sweep.once()
    await core.wakeups.idle()
    await _show_leftovers(core, channel_name)
    await core.receivers.run()
    await core.wakeups.idle()


async def _show_leftovers(core: Core, channel_name: str) -> None:
    """Show first what an earlier process could not print; it may have to wait a moment for its next try."""
    for delivery in await _unsent(core, channel_name):
        now = core.clock.now()
        await core.clock.sleep(((delivery.not_before or now) - now).total_seconds())
        await core.sweep.once()
        await core.wakeups.idle()


async def _unsent(core: Core, channel_name: str) -> Sequence[Delivery]:
    return await core.store.outbox.list(state=DeliveryState.PENDING, channel=channel_name)


async def _is_answered(core: Core, channel_name: str) -> bool:
    if await _unsent(core, channel_name):
        return False
    page = await core.store.sessions.list(SessionQuery(channel=channel_name, closed=False, limit=1))
    if not page.sessions:
        return True
    rows = await core.store.sessions.page(page.sessions[0].id, limit=1)
    return not rows or rows[-1].role is Role.ASSISTANT
