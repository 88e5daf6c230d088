"""How a test and its stepper understand one another: what the one is told by, and what the other leaves."""

from __future__ import annotations

STEP = "STEP"
"""The variable that names the step at which the process is struck."""
FOLDER = "FOLDER"
"""The variable that names the folder in which the tools leave traces."""
EFFECTS = "effects.jsonl"
"""The file with a line for each run of a tool that has an effect."""
GO = "go"
"""The file that lets the tools that wait come to an end."""
LEFT = "left: "
"""Begins the line that says what is left of the work after a stop in good order."""
