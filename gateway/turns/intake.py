"""The one gate: everything that comes in is judged, and what is admitted is stored, before anything else happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loguru import logger

from gateway.domain.busy import Busy, BusyModes
from gateway.domain.errors import NotFound, Overfull, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.outbound import NewDelivery, Outbound
from gateway.domain.phrases import Phrases
from gateway.domain.policy import Decision, Missing, Verdict, decide
from gateway.domain.resets import ResetRule
from gateway.domain.turn import TurnState
from gateway.ports.channel import Capabilities
from gateway.ports.clock import Clock
from gateway.ports.commands import CommandHandler
from gateway.ports.outbox import Outbox
from gateway.ports.policy import Policy
from gateway.ports.sessions import NewSession, Sessions
from gateway.ports.turns import Turns
from gateway.ports.wakeups import Signal, Topic, Wakeups
from gateway.turns.presence import Attention
from gateway.turns.telling import Step, Teller

NO_RESETS = ResetRule()


class Intake:
    """A `Sink`: once a call returns, the event is stored, or refused for good."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        turns: Turns,
        outbox: Outbox,
        wakeups: Wakeups,
        policy: Policy,
        clock: Clock,
        capabilities: Mapping[str, Capabilities],
        attention: Attention,
        teller: Teller,
        modes: BusyModes,
        max_waiting: int,
        commands: CommandHandler,
        new_session: Callable[[Inbound], NewSession] = lambda inbound: NewSession(origin=inbound.origin),
        resets: ResetRule = NO_RESETS,
        phrases: Phrases,
    ) -> None:
        self._sessions = sessions
        self._turns = turns
        self._outbox = outbox
        self._wakeups = wakeups
        self._policy = policy
        self._clock = clock
        self._capabilities = capabilities
        self._attention = attention
        self._teller = teller
        self._modes = modes
        self._max_waiting = max_waiting
        self._commands = commands
        self._new_session = new_session
        self._resets = resets
        self._phrases = phrases

    async def __call__(self, inbound: Inbound) -> None:
        """Take one event in."""
        decision = decide(inbound, await self._policy.rules(inbound.route.channel))
        if decision.verdict is Verdict.ADMIT:
            await self._admit(inbound)
        elif decision.verdict is Verdict.PAIR:
            self._teller.of_message(Step.NOT_ADMITTED, inbound, reason=decision.reason)
            await self._tell_stranger(inbound, decision)
        else:
            self._teller.of_message(Step.IGNORED, inbound, level="DEBUG", reason=decision.reason)

    async def _admit(self, inbound: Inbound) -> None:
        try:
            if await self._commands.handle(inbound):
                self._teller.of_message(Step.COMMAND, inbound, command=inbound.text.strip())
                return
            await self._reset_if_over(inbound)
            session_id = await self._turns.accept(inbound, self._new_session(inbound), most_waiting=self._max_waiting)
        except Overfull as full:
            self._teller.of_message(Step.OVERFULL, inbound, level="WARNING", waiting=full.most)
            await self._tell(inbound, self._phrases.overfull.format(most=full.most), f"overfull:{full.oldest}")
        except Unavailable:
            raise
        except Exception:  # the supervised boundary of intake: an event we stumble over must not hold up all behind it
            logger.bind(session=str(inbound.key), channel=inbound.route.channel, message=inbound.dedupe_key).exception(
                "an event could not be stored by a fault of ours, and is refused for good"
            )
            await self._tell(inbound, self._phrases.failed.format(reference=inbound.dedupe_key), inbound.event_id)
        else:
            await self._accepted(inbound, session_id)

    async def _accepted(self, inbound: Inbound, session_id: str | None) -> None:
        if session_id is None:
            self._teller.of_message(Step.DUPLICATE, inbound)
            return
        self._teller.of_message(Step.ACCEPTED, inbound)
        self._attention.working(session_id, inbound.route)
        await self._wakeups.wake(Topic.SESSION, session_id)
        if self._modes.of(inbound.key) is Busy.INTERRUPT:
            await self._wakeups.signal(session_id, Signal.INPUT)

    async def _reset_if_over(self, inbound: Inbound) -> None:
        """Close a session that a rule says is over, so that this message begins another. By default no rule does."""
        if self._resets.is_never:
            return
        try:
            session = await self._sessions.get(inbound.key)
        except NotFound:
            return
        is_over = self._resets.is_over(session.updated_at, self._clock.now())
        if is_over and not await self._is_at_work(session.id):
            await self._sessions.close(inbound.key, only=session.id)
            logger.bind(session=str(inbound.key)).info("the session was over; a new one begins")

    async def _is_at_work(self, session_id: str) -> bool:
        """Whether a turn of the session is unfinished, or something waits in it: then it is not over, however old."""
        if (await self._turns.backlog(session_id)).count:
            return True
        newest = await self._turns.list(session_id=session_id, limit=1)
        return any(turn.state in (TurnState.RUNNING, TurnState.WAITING) for turn in newest)

    async def _tell(self, inbound: Inbound, text: str, about: str) -> None:
        """Tell a person why a message is not taken; once for each thing there is to tell."""
        note = NewDelivery(
            route=inbound.route, outbound=Outbound(text=text), dedupe_key=f"refused:{inbound.route.channel}:{about}"
        )
        if await self._outbox.enqueue([note]):
            await self._wakeups.wake(Topic.LANE, inbound.route.lane)

    async def _tell_stranger(self, inbound: Inbound, decision: Decision) -> None:
        """Say, at most once a day to each person, which id the owner needs.

        In a shared chat only that person may see it; where the platform cannot do that, nothing is said.
        """
        if not inbound.is_direct and not self._capabilities[inbound.route.channel].private_notes:
            return
        note = NewDelivery(
            route=inbound.route,
            outbound=Outbound(
                text=self._stranger_text(inbound, decision),
                only_for=None if inbound.is_direct else inbound.sender.id,
            ),
            dedupe_key=f"stranger:{inbound.route.channel}:{inbound.sender.id}:{self._clock.now():%Y-%m-%d}",
        )
        if await self._outbox.enqueue([note]):
            await self._wakeups.wake(Topic.LANE, inbound.route.lane)

    def _stranger_text(self, inbound: Inbound, decision: Decision) -> str:
        if decision.missing is Missing.CHAT:
            return self._phrases.unlisted_chat.format(id=inbound.route.chat_id)
        return self._phrases.unlisted_person.format(id=inbound.sender.id)
