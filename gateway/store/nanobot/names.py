"""What things are called in nanobot's files, for what reads them and what writes them."""

from __future__ import annotations

import base64

SUFFIX = ".jsonl"
METADATA = "metadata"
"""The type of the first row, and in it the name of the free facts."""
PROVIDER_STATE = "provider_state"
"""The type of a row that holds what a provider remembers."""
LAST_SUMMARY = "_last_summary"
"""Under this name of the free facts stands the summary of what the model is not sent again."""
UNREAD = "nanobot"
"""Under this name of a session's metadata here stands what its file told of it that has no place."""

EVENT = "injected_event"
SUBAGENT_RESULT = "subagent_result"
"""The event that an announcement is."""
HIDDEN_HISTORY = "_hidden_history"
"""By this, older versions mark an announcement."""
COMMAND = "_command"
DELIVERY = "_channel_delivery"
CONTEXT = "_runtime_context"
"""The marker that says what at the end of a row's content was for the model alone."""
CONTEXT_VERSION = 1
BLANK_LINE = "\n\n"
"""What parts a text from the context at its end."""
ANNOUNCEMENT = "announcement"
"""Under this name of a row's `extra` here stands what an announcement told, in fields."""

CLI_APP = "CLI App"
"""How people call the one kind of attachment that nanobot knows."""
APPS = "cli_apps"
APP_NAME, APP_ENTRY, APP_SKILL = "name", "entry_point", "skill"


def storage_name(key: str) -> str:
    """Return the stem of the file that nanobot keeps a session in."""
    return base64.urlsafe_b64encode(key.encode(errors="replace")).decode().rstrip("=")
