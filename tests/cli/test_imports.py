"""What importing the command line may load."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.acceptance.gateway import REPOSITORY

MAY_LOAD = {"typer", "gateway", "annotated_doc", "typing_extensions", "click", "rich", "shellingham"}
SCRIPT = """
import sys, json
before = set(sys.modules)
import gateway.cli
print(json.dumps(sorted({name.split('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)))
print(json.dumps(sorted(name for name in sys.modules if name.startswith(('gateway.', 'channels')))))
"""
OURS = ("gateway.cli", "gateway.domain", "gateway.ports")
"""What names and types a command line need; nothing of these loads a library."""


def test_importing_the_command_line_loads_no_channel_model_or_web_library() -> None:
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    others, ours = (json.loads(line) for line in run.stdout.splitlines())
    assert set(others) <= MAY_LOAD
    assert [name for name in ours if not name.startswith(OURS)] == []
