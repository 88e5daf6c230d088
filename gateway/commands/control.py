"""Control: what must not queue behind a turn, acted upon beside it."""

from __future__ import annotations

from gateway.domain.commands import command_of
from gateway.domain.errors import NotFound
from gateway.domain.inbound import Inbound
from gateway.domain.outbound import NewDelivery, Outbound
from gateway.domain.phrases import Phrases
from gateway.domain.turn import Stopping
from gateway.ports.commands import CommandHandler
from gateway.ports.outbox import Outbox
from gateway.ports.sessions import Sessions
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Signal, Topic, Wakeups


class Control(CommandHandler):
    """Stops turns. That a stop was asked for is stored before anybody is told, so that it holds in whatever follows."""

    def __init__(self, *, sessions: Sessions, turns: Turns, outbox: Outbox, wakeups: Wakeups, phrases: Phrases) -> None:
        self._sessions = sessions
        self._turns = turns
        self._outbox = outbox
        self._wakeups = wakeups
        self._phrases = phrases

    async def handle(self, inbound: Inbound) -> bool:
        """Act on the event if it is control; commands that have their place among the messages are not."""
        command = command_of(inbound.text)
        if command is None or not command.is_control:
            return False
        await self._stop(inbound)
        return True

    async def _stop(self, inbound: Inbound) -> None:
        found = await self._turns.request_stop(inbound.key, inbound.sender.id, event=inbound)
        if found is Stopping.NOTHING:
            await self._say(inbound, self._phrases.nothing_to_stop)
        elif found is Stopping.REQUESTED:
            await self._signal(inbound)

    async def _signal(self, inbound: Inbound) -> None:
        """Tell whoever runs the turn, and wake the session: a turn that waits is ended by being begun."""
        try:
            session = await self._sessions.get(inbound.key)
        except NotFound:
            return
        await self._wakeups.signal(session.id, Signal.STOP)
        await self._wakeups.wake(Topic.SESSION, session.id)

    async def _say(self, inbound: Inbound, text: str) -> None:
        reply = NewDelivery(route=inbound.route, outbound=Outbound(text=text), dedupe_key=f"control:{inbound.event_id}")
        if await self._outbox.enqueue([reply]):
            await self._wakeups.wake(Topic.LANE, inbound.route.lane)
