"""What a session's turns run with: which model, and what it is told first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A model id and a system prompt."""

    model: str
    system_prompt: str = ""


Profiles = Callable[[Session], Profile]
"""Chooses the profile of a session; asked at every request, so that a change of settings holds from the next one."""
