"""An installation for the doctor to look at."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.app.locks import only_process
from gateway.cli.main import app
from tests.cli.shelf import Shelf
from tests.clock import ManualClock

SLACK = '[channels.slack]\nbot_token = "xoxb-1-hidden"\napp_token = "xapp-1-hidden"\n'
TELEGRAM = '[channels.telegram]\nbot_token = "123456:hidden-hidden"\n'
HEALTHY = f'{SLACK}people = ["U1", "U2"]\nchats = ["C1"]\n{TELEGRAM}people = [1]\n'
CHECKS = [
    "configuration", "data directory", "store", "gateway", "models", "channel slack", "channel telegram",
    "turns set aside", "deliveries given up", "deliveries waiting", "damaged records",
]  # fmt: skip
PAGE = 4096


class Patient(Shelf):
    """A store that the doctor looks at, filled three hours ago."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.clock = ManualClock(datetime.now(UTC) - timedelta(hours=3))
        self.database = data / "trunkline.db"
        self.lock = data / "trunkline.db.gateway.lock"
        self.configure(HEALTHY)

    def configure(self, text: str) -> None:
        (self.data / "trunkline.toml").write_text(text)

    def look(self, *arguments: str) -> tuple[int, str]:
        """Run the doctor; return its exit code and all that it says."""
        result = CliRunner().invoke(app, ["doctor", "--data", str(self.data), *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.output

    def found(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """Return what is found, by the names of the checks."""
        return {one["check"]: one for one in json.loads(self.look(*arguments, "--json")[1])}

    def marks(self) -> dict[str, str]:
        """Return the checks that are not ok, with their marks."""
        return {check: one["mark"] for check, one in self.found().items() if one["mark"] != "ok"}

    def sql(self, *statements: str) -> None:
        """Change the store behind its back."""
        with closing(sqlite3.connect(self.database)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return every file with what it holds and who may read it."""
        return {one.name: (one.read_bytes(), one.stat().st_mode) for one in self.data.iterdir()}

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """Hold the lock as a gateway does."""
        with only_process(self.lock, "a gateway"):
            yield
