"""`trunkline chat`: one terminal's own chat, alone or beside a running gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from gateway.app.channels import terminal_channel, terminal_rules
from gateway.app.core import Core, lock_path, open_core
from gateway.app.locks import only_process
from gateway.app.working import first, until, working
from gateway.config.kinds import CHAT
from gateway.config.settings import Settings
from gateway.domain.errors import InvalidKey, Refused
from gateway.domain.keys import check_channel_name
from gateway.domain.message import Kind, Role
from gateway.domain.outbound import Delivery, DeliveryState
from gateway.ports.channel import Channel
from gateway.ports.sessions import SessionQuery
from gateway.wakeups.clock import SystemClock

LOOKED_AT = 10
"""Rows among which the newest that is no mark for people is."""


class Ending(StrEnum):
    """How a chat ended."""

    ANSWERED = "answered"
    UNANSWERED = "unanswered"
    UNSHOWN = "unshown"


async def run_chat(
    settings: Settings,
    name: str,
    *,
    environment: Mapping[str, str],
    stop: asyncio.Event,
    interactive: bool,
    greet: Callable[[], None],
) -> Ending:
    """Chat until the input ends; return whether the last message was answered and the answer shown.

    Each name is a chat of its own, and belongs to one process at a time, so that an answer never comes out of another
    terminal. A piped input is one message. `greet` is called once the chat is there. Raises `Refused` for a name that
    cannot be, `Unavailable` while another process has the chat open.
    """
    channel_name = _channel_name(name)
    clock = SystemClock()
    channels = {channel_name: terminal_channel(channel_name, clock, one_message=not interactive)}
    what = f"the chat {name!r}" if name else "this chat (another NAME is another chat)"
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
            greet()
            async with working(core) as fallen:
                await first(until(stop), until(fallen), _chat(core, channel_name, interactive=interactive))
            return await _ending(core, channels[channel_name])


async def _chat(core: Core, channel_name: str, *, interactive: bool) -> None:
    await core.sweep.once()
    if not interactive:
        # What was left unfinished comes before a new message. A person is not kept waiting for it, and may stop it.
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


async def _ending(core: Core, channel: Channel) -> Ending:
    if await _unsent(core, channel.name):
        return Ending.UNSHOWN
    if channel.health().last_inbound is None:
        return Ending.ANSWERED
    found = (await core.store.sessions.list(SessionQuery(channel=channel.name, closed=False, limit=1))).sessions
    if not found:
        # What was said was for the gateway alone, and opened no conversation.
        return Ending.ANSWERED
    (session,) = found
    rows = [
        row for row in await core.store.sessions.page(session.id, limit=LOOKED_AT) if row.kind is not Kind.COMPACTED
    ]
    # A command is answered by what it does; a message that a model is to answer has its answer behind it.
    is_answered = bool(rows) and (rows[-1].role is Role.ASSISTANT or rows[-1].kind is Kind.COMMAND)
    return Ending.ANSWERED if is_answered else Ending.UNANSWERED


def _channel_name(name: str) -> str:
    try:
        return check_channel_name(f"{CHAT}-{name}" if name else CHAT)
    except InvalidKey:
        raise Refused(f"expected a chat name of the letters a-z, 0-9, _ and -, got {name!r}") from None
