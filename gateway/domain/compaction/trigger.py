"""When a session is compacted: once the next request would take a set share of what the model can be sent.

The share leaves room for the rounds that come before the next look, and for our count being wrong. The cap is for
models with huge windows, whose answers get worse and dearer long before those are full.
"""

from __future__ import annotations

import math

from gateway.domain.calibration import LEAST_RATIO

SHARE = 0.8
CAP = 250_000
KEEP_SHARE = 0.25
"""How much of the trigger the rows may take that stay as they are. Less would be forgetful, more soon due again."""


def trigger(window: int, share: float, cap: int, kept_for_answer: int, limit: int | None = None) -> int:
    """Return from how many tokens on a request is due to be made smaller.

    The share is of what a request may take at all: the window without the answer's room, and no more than the
    operator's limit. A share of the window itself could lie above that and would never be reached.
    """
    most = window - kept_for_answer
    if limit is not None:
        most = min(most, limit)
    return max(min(int(share * most), cap), 0)


def signal(reported: int | None, counted_then: int, counted_now: int, factor: float) -> int:
    """Return what the next request is expected to take, in the provider's tokens.

    `reported` is the input of the latest call, cached or not, and `counted_then` our count of what it was sent; what
    was added since counts by `factor`, the provider's tokens to one of ours. Where nothing that can be was reported, or
    the view has become smaller since, only our count is known.
    """
    if not reported or reported < LEAST_RATIO * counted_then or counted_now < counted_then:
        return math.ceil(counted_now * factor)
    return reported + math.ceil((counted_now - counted_then) * factor)


def keep_budget(trigger: int, factor: float) -> int:
    """Return how many of our tokens may stay as they are, given the trigger in the provider's."""
    return int(trigger * KEEP_SHARE / factor)
