"""The settings of a console channel."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ConsoleOptions(BaseModel):
    """How the chat is read and how it looks."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    prompt: str = "you> "
    """What stands in front of the line a person types; piped input and output have none."""
    prefix: str = "bot> "
    """What stands in front of an answer on a terminal."""
    one_message: bool = False
    """Whether piped input is one message as a whole, and not a message a line."""
