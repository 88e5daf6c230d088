"""The text of a Telegram message, read by its entities.

What is a mention or a command is Telegram's word, given as entities, never a search in the text: `jane@tbot.com` holds
no mention of @tbot. Entities count UTF-16 units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from channels.telegram.updates import Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who the bot is; `username` has no `@`."""

    id: int
    username: str


class Words:
    """A text with its entities, as the bot `me` reads it."""

    def __init__(self, text: str, entities: Sequence[Entity], me: Me) -> None:
        self._units = text.encode("utf-16-le")
        self._entities = [entity for entity in entities if entity.length]
        self._me = me
        self._text = text
        self._start = self._after_mention()
        self._command = self._leading_command()

    @property
    def spoken(self) -> str:
        """The text without the bot's name in front, or behind the command in front; all if that leaves nothing."""
        text = self._slice(self._start)
        if self._command:
            command, _, name = self._of(self._command).partition("@")
            text = command + self._slice(self._end(self._command)) if self._is_mine(name) else text
        return text if text.strip() else self._text

    @property
    def is_command(self) -> bool:
        """Whether it starts with a command that is not for another bot."""
        return self._command is not None and not self.is_for_another

    @property
    def is_for_another(self) -> bool:
        """Whether it starts with a command for another bot."""
        name = self._of(self._command).partition("@")[2] if self._command else ""
        return bool(name) and not self._is_mine(name)

    @property
    def names_bot(self) -> bool:
        """Whether the bot is mentioned, or called by `/command@name`."""
        return any(self._names_bot(entity) for entity in self._entities)

    def _names_bot(self, entity: Entity) -> bool:
        if entity.type == "text_mention":
            return entity.user is not None and entity.user.id == self._me.id
        if entity.type == "mention":
            return self._is_mine(self._of(entity).removeprefix("@"))
        return entity.type == "bot_command" and self._is_mine(self._of(entity).partition("@")[2])

    def _is_mine(self, name: str) -> bool:
        return bool(name) and name.lower() == self._me.username.lower()

    def _after_mention(self) -> int:
        for entity in self._entities:
            if entity.offset == 0 and entity.type != "bot_command" and self._names_bot(entity):
                rest = self._slice(self._end(entity))
                spare = len(rest) - len(rest.lstrip(" \t\n,:"))  # one UTF-16 unit each
                return self._end(entity) + spare
        return 0

    def _leading_command(self) -> Entity | None:
        starting = (entity for entity in self._entities if entity.offset == self._start)
        return next((entity for entity in starting if entity.type == "bot_command"), None)

    def _of(self, entity: Entity) -> str:
        return self._slice(entity.offset, self._end(entity))

    def _end(self, entity: Entity) -> int:
        return entity.offset + entity.length

    def _slice(self, start: int, end: int | None = None) -> str:
        stop = len(self._units) if end is None else 2 * end
        return self._units[2 * start : stop].decode("utf-16-le", "replace")
