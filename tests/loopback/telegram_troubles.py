"""What can go wrong at the loopback Telegram, armed call by call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tests.loopback.telegram_rules import Refusal

SHOWING = ("sendMessage", "editMessageText", "deleteMessage")


class Trouble(StrEnum):
    """What can go wrong with one call."""

    LIMITED = "limited"
    """429, with the seconds to wait."""
    LOST = "lost"
    """Applied, and the connection dropped without an answer."""
    DROPPED = "dropped"
    """The connection dropped before anything happened."""
    BROKEN = "broken"
    """500, before anything happened."""
    BAD_GATEWAY = "bad gateway"
    """502 with a page of a proxy that repeats the address, before anything happened."""
    LOST_PAGE = "lost page"
    """404 with a page of a proxy that repeats the address, before anything happened."""
    NONSENSE = "nonsense"
    """200 with an answer of a shape that no method has."""
    BLOCKED = "blocked"
    """403: the person blocked the bot."""
    BAD_ENTITIES = "bad entities"
    """400 for the formatting."""
    MIGRATED = "migrated"
    """400: the group became a supergroup with another id."""


@dataclass(frozen=True)
class Planned:
    """A trouble that waits for its call."""

    trouble: Trouble
    method: str | None
    retry_after: int

    def meets(self, method: str) -> bool:
        return method == self.method or (self.method is None and method in SHOWING)

    def refusal(self) -> Refusal:
        """Return the refusal, for a trouble that is one."""
        return {
            Trouble.LIMITED: Refusal(
                429, f"Too Many Requests: retry after {self.retry_after}", retry_after=self.retry_after
            ),
            Trouble.BROKEN: Refusal(500, "Internal Server Error"),
            Trouble.BLOCKED: Refusal(403, "Forbidden: bot was blocked by the user"),
            Trouble.BAD_ENTITIES: Refusal(400, "Bad Request: can't parse entities: unexpected end of an entity"),
            Trouble.MIGRATED: Refusal(
                400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=-1007
            ),
        }[self.trouble]
