"""What an idle gateway costs: the memory it holds and the CPU it took to start, beside a bare interpreter's."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import psutil

from bench.row import Row

READY = "stops it."
BARE = f"import asyncio, sqlite3, sys; print({READY!r}, flush=True); sys.stdin.read()"


def measure_processes() -> Sequence[Row]:
    """Start a gateway with nothing configured and a bare interpreter, and look at both once they are up."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["-m", "gateway.cli", "run", "--data", folder, "--port", "0"]
        ours = _look(arguments)
    floor = _look(["-c", BARE])
    bare = "a bare interpreter with asyncio and sqlite3"
    return [
        Row(name="idle memory", ours=ours[0], floor=floor[0], unit="MB", floor_is=bare),
        Row(name="start-up CPU", ours=ours[1] * 1000, floor=floor[1] * 1000, unit="ms", floor_is=bare),
    ]


def _look(arguments: Sequence[str]) -> tuple[float, float]:
    """Return the resident megabytes and the CPU seconds of a process that has said it is ready."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        while READY not in process.stdout.readline():
            pass
        seen = psutil.Process(process.pid)
        times = seen.cpu_times()
        memory = seen.memory_info().rss / 1_000_000
        process.terminate()
        process.communicate()
    return memory, times.user + times.system
