"""Words that a person says to the gateway and not to the model, told apart from talk by being exactly these."""

from __future__ import annotations

import re
from enum import StrEnum


class Command(StrEnum):
    """What can be asked of the gateway in a chat."""

    COMPACT = "compact"
    STOP = "stop"

    @property
    def is_control(self) -> bool:
        """Whether it must not wait behind a turn; everything else is input in its order."""
        return self is Command.STOP


_COMMAND = re.compile(rf"\s*[/!]({'|'.join(Command)})\s*", re.IGNORECASE)


def command_of(text: str) -> Command | None:
    """Return the command that a message is, in any letter case, or None for talk.

    It is written `/compact` or, where a platform keeps the slash for itself, `!compact`, and nothing stands with it.
    A bot's name behind it (`/compact@our_bot`) is for its channel to take away: only that knows whose name it is.
    """
    found = _COMMAND.fullmatch(text)
    return Command(found[1].lower()) if found else None
