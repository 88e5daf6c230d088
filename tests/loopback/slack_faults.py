"""What a test can make go wrong with one call of the loopback Slack."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

SHOWING = ("chat.postMessage", "chat.update", "chat.delete", "chat.postEphemeral")


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFault:
    """What happens to one call: it waits for `release`, is applied or not, and gets an error for an answer, or none."""

    error: str | None = None
    status: int | None = None
    retry_after: str | None = None
    lost: bool = False
    apply: bool = False
    release: asyncio.Event | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Faults:
    """What was armed, in order, each for one call."""

    def __init__(self) -> None:
        self._armed: list[tuple[str | None, SlackFault]] = []

    def arm(self, fault: SlackFault, method: str | None) -> None:
        """Arm a fault for the next call of a method, or for the next call that shows something."""
        self._armed.append((method, fault))

    def take(self, method: str) -> SlackFault:
        """Return what happens to this call of a method: nothing but the usual, unless it was armed."""
        for index, (name, fault) in enumerate(self._armed):
            if method == name or (name is None and method in SHOWING):
                del self._armed[index]
                return fault
        return SlackFault()

    def calm(self) -> None:
        """Forget what no call has met yet."""
        self.release()
        self._armed.clear()

    def release(self) -> None:
        """Let go of every call that would be held."""
        for _, fault in self._armed:
            if fault.release is not None:
                fault.release.set()


def limited(seconds: int = 7) -> SlackFault:
    """Refuse the call for its rate."""
    return SlackFault(error="ratelimited", status=429, retry_after=str(seconds))


def refused(code: str, **facts: Any) -> SlackFault:
    """Answer with an error code."""
    return SlackFault(error=code, facts=facts)


def lost(*, apply: bool = True) -> SlackFault:
    """Cut the connection instead of answering, after the call was applied or before."""
    return SlackFault(lost=True, apply=apply)


def broken(status: int = 500, *, apply: bool = False) -> SlackFault:
    """Answer with an HTTP error, after the call was applied or before."""
    return SlackFault(status=status, apply=apply)


def held(release: asyncio.Event) -> SlackFault:
    """Keep the call waiting until `release` is set, then treat it as usual."""
    return SlackFault(release=release)
