"""What the tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shelf import Shelf


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)
