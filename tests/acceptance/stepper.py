"""`python -m tests.acceptance.stepper run …`: the real command with scripted tools, struck at a step.

All is as in `trunkline run`; what is added are the tools (`tools.py`, at work in the folder that FOLDER names), the
step at which the process is killed, if STEP names one (`steps.py`), and a line of JSON at the end of a stop in good
order that says what is left of the work.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.app.core import Core
from gateway.app.run import run_gateway
from gateway.cli import main as command
from gateway.cli import running
from tests.acceptance import steps
from tests.acceptance.tools import ScriptedTools
from tests.acceptance.traces import FOLDER, LEFT, STEP


def main() -> None:
    """Run the command of this process's arguments."""
    if step := os.environ.get(STEP):
        steps.arm(step)
    running.run_gateway = _run_with_tools  # type: ignore[attr-defined]
    command()


async def _run_with_tools(*arguments: Any, started: Callable[[Core, str | None], None], **named: Any) -> None:
    cores: list[Core] = []

    def noted(core: Core, address: str | None) -> None:
        cores.append(core)
        started(core, address)

    scripted = ScriptedTools(Path(os.environ[FOLDER]))
    await run_gateway(*arguments, **{**named, "started": noted, "tools": scripted})
    print(f"{LEFT}{json.dumps(_left(cores[0]))}", flush=True)  # noqa: T201


def _left(core: Core) -> dict[str, int]:
    """Count what should have ended with the gateway."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    wakeups, attention = core.wakeups, core.attention
    return {
        "tasks": len(others),
        "running": len(wakeups._running),
        "waiting": len(wakeups._waiting),
        "timers": len(wakeups._timers),
        "receivers": len(wakeups._receivers),
        "signs": len(attention._signs),
        "keepers": len(attention._keepers),
    }


if __name__ == "__main__":
    main()
