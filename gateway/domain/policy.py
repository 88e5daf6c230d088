"""Who may talk to the bot, and where: one pure decision for everything that comes in.

Closed by default. Only stable ids count, never names. `ANYONE` in a list opens it, and only if it is written there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.inbound import Inbound, InboundKind

ANYONE = "*"

_STARTS_NOTHING = frozenset({InboundKind.EDIT, InboundKind.DELETE, InboundKind.REACTION, InboundKind.CHOICE})
"""Events that change a message or answer a question of ours; nothing of them is a message to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """A channel's lists: people by id, shared chats by id, and shared chats in which anyone may talk."""

    people: frozenset[str] = frozenset()
    chats: frozenset[str] = frozenset()
    anyone_in: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    """People who are asked where something has to be decided; they may talk as all others may."""

    @property
    def is_open(self) -> bool:
        """Whether a person nobody listed can reach the bot."""
        return ANYONE in self.people or bool(self.anyone_in)


class Verdict(StrEnum):
    """What becomes of an event."""

    ADMIT = "admit"
    PAIR = "pair"
    OVERHEAR = "overhear"
    IGNORE = "ignore"


class Missing(StrEnum):
    """Whose id is not on its list."""

    PERSON = "person"
    CHAT = "chat"


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and for the log the reason of it. `missing` is what the owner would have to list to admit this."""

    verdict: Verdict
    reason: str
    missing: Missing | None = None


def decide(inbound: Inbound, rules: Rules) -> Decision:
    """Decide on one event before any download, typing, reaction or model call.

    `PAIR` means: a person who is not admitted yet may be told, rarely and briefly, which id the owner needs.
    """
    if inbound.sender.is_bot:
        return Decision(Verdict.IGNORE, "another bot")
    if inbound.kind in _STARTS_NOTHING:
        return Decision(Verdict.IGNORE, f"{inbound.kind.value} starts no turn")
    if not inbound.is_direct and not inbound.addresses_bot:
        return Decision(Verdict.IGNORE, "not addressed to the bot")
    known = _lists(rules.people, inbound.sender.id)
    if not inbound.is_direct:
        if inbound.route.chat_id in rules.anyone_in:
            return Decision(Verdict.ADMIT, "chat open to anyone")
        if not _lists(rules.chats, inbound.route.chat_id):
            return Decision(Verdict.PAIR, "unlisted chat", Missing.CHAT)
    if known:
        return Decision(Verdict.ADMIT, "listed person")
    return Decision(Verdict.PAIR, "unlisted person", Missing.PERSON)


def _lists(ids: frozenset[str], id: str) -> bool:
    return ANYONE in ids or id in ids
