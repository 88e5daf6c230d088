"""Errors a caller can act on, one class per decision.

TrunklineError
├── Refused            bad input: says what was expected and what came
│   ├── InvalidKey
│   └── Overfull       more waits for a session than may (`oldest`)
├── Forbidden          the caller may not do this
├── NotFound           the thing named is not there
├── Unavailable        trying again later may work (`retry_after` seconds, when known)
│   └── ModelUnavailable   the language model, and nothing else
├── AuthFailed         a credential is missing or refused: ask the owner
├── ConfigError        a setting is wrong: `setting` names it
├── LeaseLost          somebody else holds the work now: stop, write nothing
├── StopRequested      somebody asked the turn to stop: end it, write nothing else
├── ContextOverflow    the request is larger than the model's window
├── ThinkingRefused    the provider refused replayed thinking blocks
├── Filtered           the provider's content filter stopped the answer
└── DeliveryError      what became of one call to a platform
    ├── NotDone        certainly not applied (`code`, `retry_after`, `fatal`)
    │   └── Unreachable    the platform is away, and nothing was sent; it heals by itself
    ├── Unknown        perhaps applied: look before sending again
    └── Gone           somebody deleted the message: do not post it again
"""

from __future__ import annotations

import math

LONGEST_WAIT = 86_400.0
"""The longest wait, in seconds, that another side is obeyed in; a limit beyond a day is a mistake of theirs."""


def bounded_wait(seconds: float | None) -> float | None:
    """Return the wait another side asks for as one that can be kept: finite, not negative, at most a day."""
    if seconds is None:
        return None
    return LONGEST_WAIT if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_WAIT)


class TrunklineError(Exception):
    """The root of every error raised on purpose."""


class Refused(TrunklineError, ValueError):
    """The input is not acceptable; the message says what was expected and what came."""


class InvalidKey(Refused):
    """A session key does not follow `channel:chat_id[:thread]`."""


class Overfull(Refused):
    """More messages wait for a session than may; `oldest` is the dedupe key of the one that waits longest."""

    def __init__(self, most: int, oldest: str) -> None:
        super().__init__(f"expected at most {most} messages that wait for one session, got one more")
        self.most = most
        self.oldest = oldest


class Forbidden(TrunklineError, PermissionError):
    """The caller may not do this."""


class NotFound(TrunklineError, LookupError):
    """The thing that was named does not exist."""


class Unavailable(TrunklineError, ConnectionError):
    """The other side did not answer; trying again later may work."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = bounded_wait(retry_after)


class ModelUnavailable(Unavailable):
    """The language model did not answer; whatever else is away is not meant."""


class AuthFailed(TrunklineError, PermissionError):
    """A credential is missing or was refused; only the owner can mend it."""


class ConfigError(TrunklineError, ValueError):
    """A setting is wrong; `setting` is its dotted name."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(f"{setting}: {message}" if setting else message)
        self.setting = setting


class LeaseLost(TrunklineError):
    """The lease is held by somebody else now, or was released; the holder must stop and write nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the lease {name!r} is no longer held here")
        self.name = name


class StopRequested(TrunklineError):
    """Somebody asked the turn to stop; nothing may be written for it but its end. `by` is the id of who did."""

    def __init__(self, by: str) -> None:
        super().__init__("the turn was asked to stop")
        self.by = by


class ContextOverflow(TrunklineError):
    """The request is larger than the model's context window."""


class ThinkingRefused(TrunklineError):
    """The provider refused thinking blocks that were replayed to it."""


class Filtered(TrunklineError):
    """The provider's content filter stopped the answer."""


class DeliveryError(TrunklineError):
    """What became of one call that shows something on a platform."""


class NotDone(DeliveryError):
    """The call was certainly not applied.

    `code` is the platform's own word for why, `retry_after` the seconds it asked us to wait, and `fatal` says that
    trying again cannot help (blocked, kicked, no such chat). `formatting` says that the same text sent plain may pass.
    """

    def __init__(
        self, code: str, *, retry_after: float | None = None, fatal: bool = False, formatting: bool = False
    ) -> None:
        super().__init__(f"the platform did not take the message: {code}")
        self.code = code
        self.retry_after = bounded_wait(retry_after)
        self.fatal = fatal
        self.formatting = formatting


class Unreachable(NotDone):
    """The platform could not be reached, so certainly nothing was sent. It heals by itself, however long it takes."""


class Unknown(DeliveryError):
    """The call may have been applied: its answer was lost."""


class Gone(DeliveryError):
    """Somebody deleted the message; it is not to be posted again."""
