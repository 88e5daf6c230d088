"""Asking an owner what to do where no summary can be had, while the turn waits and holds nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.domain.message import Mark, Message, Role
from gateway.domain.outbound import Choice
from gateway.domain.phrases import Phrases
from gateway.domain.turn import Joined, Turn, Waiting
from gateway.ports.clock import Clock
from gateway.ports.leases import Lease
from gateway.ports.patience import until_stored
from gateway.ports.sessions import Sessions
from gateway.ports.turns import Turns
from gateway.turns.options import GatewayOptions
from gateway.turns.saying import delivery

CHOICE = "choice"
ABOUT = "compaction"
RETRY, TRIM = "retry", "trim"

Owners = Callable[[str], Collection[str]]
"""Returns the ids of those who own the bot in a channel."""


class Suspended(Exception):
    """The turn waits for a choice, at most until a moment; nothing more may be written for it now."""

    def __init__(self, until: datetime) -> None:
        super().__init__(until)
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosing:
    """Puts the question and finds the answer."""

    turns: Turns
    sessions: Sessions
    clock: Clock
    options: GatewayOptions
    owners: Owners
    phrases: Phrases

    def may_ask(self, turn: Turn, rows: Sequence[Message]) -> bool:
        """Whether the chat is an owner's own, so that nobody else is bothered with a question about machinery."""
        if self.options.compaction_failure != "ask":
            return False
        asked = next((row.sender for row in reversed(rows) if row.role is Role.USER and row.sender), None)
        return asked is not None and not asked.shared and asked.id in self.owners(turn.key.channel)

    async def ask(self, turn: Turn, lease: Lease, rows: Sequence[Message]) -> None:
        """Ask, set the turn down until the answer or the time limit, and raise `Suspended`."""
        minutes = self.options.compaction_ask_minutes
        until = self.clock.now() + timedelta(minutes=minutes)
        asked = 1 + (_asked_before(turn) if is_about_compaction(turn) else 0)
        details = {"about": ABOUT, "asked": asked, "through": max((row.seq for row in rows), default=0)}
        waiting = Waiting(reason=CHOICE, details=details, until=until, or_message=True)
        text = self.phrases.ask_compaction.format(minutes=f"{minutes:g}")
        question = delivery(turn, f"ask:{asked}", text, self._choices())
        await until_stored(lambda: self.turns.suspend(turn, lease, waiting, [question]), self.clock)
        raise Suspended(until)

    async def answer(self, turn: Turn, lease: Lease) -> tuple[str, Joined]:
        """Return what was chosen, and what joined the turn with it.

        Anything but trying again, and silence too, is to trim. The answer itself is hidden from the model. Asked again
        after a crash, it is found again.
        """
        assert turn.waited is not None
        joined = await until_stored(lambda: self.turns.join(turn, lease), self.clock)
        through = turn.waited.details.get("through")
        after = through if isinstance(through, int) else turn.first_seq
        rows = [row for row in await self.sessions.page(turn.session_id, after=after) if row.role is Role.USER]
        for row in rows:
            if (choice := self._chosen(row.text)) is not None:
                await self.sessions.mark(turn.session_id, [row.seq], Mark.SUPERSEDED)
                return choice, joined
        return TRIM, joined

    def _choices(self) -> tuple[Choice, ...]:
        return (Choice(id=RETRY, label=self.phrases.try_again), Choice(id=TRIM, label=self.phrases.leave_out))

    def _chosen(self, text: str) -> str | None:
        word = _plainly(text)
        for number, choice in enumerate(self._choices(), 1):
            if word in (str(number), f"{number})", choice.id, _plainly(choice.label)):
                return choice.id
        return None


def is_about_compaction(turn: Turn) -> bool:
    """Whether the turn goes on after a choice about compaction."""
    waited = turn.waited
    return waited is not None and waited.reason == CHOICE and waited.details.get("about") == ABOUT


def _plainly(text: str) -> str:
    """Return words as they are compared: how a person types a label is not always how it is written."""
    return " ".join(text.split()).rstrip(".").lower()


def _asked_before(turn: Turn) -> int:
    asked = turn.waited.details.get("asked") if turn.waited else None
    return asked if isinstance(asked, int) else 1
