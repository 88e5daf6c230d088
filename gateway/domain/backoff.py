"""How long to wait before the next try."""

from __future__ import annotations

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


def backoff(attempt: int, jitter: float = 1.0, *, longest: float = LONGEST_SECONDS) -> float:
    """Return the seconds to wait after `attempt` failures (from 0), between half and all of a doubling time.

    `jitter` is random between 0 and 1, so that many that failed together do not come back together; one that waits
    alone leaves it out and waits all of the time.
    """
    whole = min(FIRST_SECONDS * 2.0 ** min(attempt, 30), longest)
    return whole * (0.5 + jitter / 2)
