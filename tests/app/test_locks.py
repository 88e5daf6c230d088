"""One process per name on one store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.app.locks import only_process
from gateway.domain.errors import Unavailable


def test_a_second_holder_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db.gateway.lock"
    with (
        only_process(path, "a gateway"),
        pytest.raises(Unavailable, match=f"a gateway is already running on .* as process {os.getpid()}"),
        only_process(path, "a gateway"),
    ):
        pass
    with only_process(path, "a gateway"):
        assert path.read_text() == f"process {os.getpid()}\n"


def test_names_do_not_hold_each_other(tmp_path: Path) -> None:
    with only_process(tmp_path / "a.lock", "a"), only_process(tmp_path / "b.lock", "b"):
        assert {path.name for path in tmp_path.iterdir()} == {"a.lock", "b.lock"}
