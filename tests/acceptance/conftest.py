"""What the acceptance tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.nursery import Nursery

pytest.register_assert_rewrite("tests.acceptance.stepped")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is only in the full counts, unless they are wanted."""
    if not config.getoption("--prove"):
        left_out = [item for item in items if item.get_closest_marker("prove")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where steppers are started."""
    with Nursery() as nursery:
        yield nursery
