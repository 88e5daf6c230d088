"""When a session is compacted: by what was reported, and before the window is full."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.compaction.trigger import CAP, SHARE, keep_budget, signal, trigger


@pytest.mark.parametrize(
    ("window", "kept", "limit", "due_at"),
    [
        (200_000, 0, None, 160_000),
        (200_000, 40_000, None, 128_000),
        (1_000_000, 64_000, None, 250_000),
        (200_000, 40_000, 50_000, 40_000),
        (200_000, 40_000, 500_000, 128_000),
        (4_000, 8_000, None, 0),
    ],
)
def test_the_trigger_is_a_share_of_what_a_request_may_take(
    window: int, kept: int, limit: int | None, due_at: int
) -> None:
    assert trigger(window, SHARE, CAP, kept, limit) == due_at


@given(st.integers(1, 3_000_000), st.floats(0.1, 0.95), st.integers(10_000, 2_000_000), st.integers(0, 100_000))
def test_the_trigger_is_reached_before_nothing_more_fits(window: int, share: float, cap: int, kept: int) -> None:
    assert 0 <= trigger(window, share, cap, kept) <= max(window - kept, 0)


def test_rows_since_the_latest_call_are_added_to_what_it_reported() -> None:
    assert signal(100_000, 80_000, 90_000, 1.2) == 112_000
    assert signal(100_000, 80_000, 80_000, 1.2) == 100_000


@pytest.mark.parametrize("reported", [None, 0, -1])
def test_without_a_report_our_count_is_used(reported: int | None) -> None:
    assert signal(reported, 80_000, 90_000, 1.2) == 108_000


def test_a_report_of_a_larger_view_is_not_used() -> None:
    assert signal(100_000, 80_000, 20_000, 1.5) == 30_000


def test_a_quarter_of_the_trigger_may_stay_in_our_tokens() -> None:
    assert keep_budget(100_000, 1.25) == 20_000
