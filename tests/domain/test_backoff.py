"""Waits that grow, and stop growing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.backoff import LONGEST_SECONDS, backoff


def test_a_wait_doubles_from_a_second_to_the_longest() -> None:
    assert [backoff(attempt) for attempt in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [backoff(attempt, longest=30) for attempt in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_jitter_spreads_a_wait_over_its_second_half() -> None:
    assert [backoff(3, jitter) for jitter in (0, 0.5, 1)] == [4, 6, 8]


@given(st.integers(0, 10**9), st.floats(0, 1))
def test_no_wait_is_longer_than_the_longest_or_shorter_than_half_a_second(attempt: int, jitter: float) -> None:
    assert 0.5 <= backoff(attempt, jitter) <= LONGEST_SECONDS
