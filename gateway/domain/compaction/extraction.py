"""What is taken from rows by rule before a summary stands for them: no model can forget or embellish it.

It accumulates over compactions, so that a file written a year ago is still named, each list within its bound.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gateway.domain.compaction.state import CompactionState
from gateway.domain.compaction.words import clipped, written
from gateway.domain.message import Kind, Message, Role, ToolCall
from gateway.domain.replay.window import is_visible

MOST_FILES = 20
MOST_COMMANDS = 10
MOST_ARTIFACTS = 10
MOST_USER_MESSAGES = 40
LONGEST_USER_MESSAGE = 600
LONGEST_COMMAND = 160
LONGEST_PATH = 300
LONGEST_TOOL = 80

_WRITERS = ("write", "edit", "append", "save", "create", "patch")
_SHELLS = ("shell", "bash", "exec", "run_command", "terminal")
_PUBLISHERS = ("artifact", "publish", "deploy")
_PATHS = ("path", "file_path", "filename")
_COMMANDS = ("command", "cmd")
_TITLES = (*_PATHS, "title", "name", "url", "id")
_CODES = ("exit_code", "exitCode", "exit", "returncode", "return_code")
_EXIT = re.compile(r"\W*exit(?:ed)?(?: with)?(?: code| status)?\W+(-?\d{1,9})\W*", re.IGNORECASE)
_FAILURES = ("error", "traceback", "[error")


class Extracted(NamedTuple):
    """The lines under each heading, people's newest messages (oldest first), and how many older ones went."""

    working_state: Mapping[str, Sequence[str]]
    user_messages: Sequence[str]
    dropped: int


def extracted(before: CompactionState | None, span: Sequence[Message]) -> Extracted:
    """Return what is known by rule after a span of rows is folded in; hidden rows are not part of it."""
    before = before or CompactionState()
    rows = [row for row in span if is_visible(row)]
    said = [*before.user_messages, *filter(None, map(_said, rows))]
    older = max(len(said) - MOST_USER_MESSAGES, 0)
    return Extracted(_working_state(before.working_state, rows), said[older:], before.user_messages_dropped + older)


def _working_state(known: Mapping[str, Sequence[str]], rows: Sequence[Message]) -> Mapping[str, Sequence[str]]:
    uses = list(_uses(rows))
    newest = uses[::-1]
    files = [line for call, _ in newest if (line := _written_file(call))]
    artifacts = [line for call, _ in newest if (line := _published(call))]
    commands = [line for call, result in uses if (line := _command(call, result))]
    tools = {clipped(call.name, LONGEST_TOOL) for call, _ in uses if call.name.strip()}
    state = {
        **known,
        "files": _distinct([*files, *known.get("files", ())])[:MOST_FILES],
        "commands": [*known.get("commands", ()), *commands][-MOST_COMMANDS:],
        "artifacts": _distinct([*artifacts, *known.get("artifacts", ())])[:MOST_ARTIFACTS],
        "tools": sorted({*known.get("tools", ()), *tools}),
    }
    return {heading: lines for heading, lines in state.items() if lines}


def _said(row: Message) -> str:
    """Return what a person wrote to the bot; reports of children and commands are nobody's words."""
    is_said = row.role is Role.USER and row.kind is Kind.CHAT
    return clipped(written(row), LONGEST_USER_MESSAGE) if is_said else ""


def _uses(rows: Sequence[Message]) -> Iterator[tuple[ToolCall, Message | None]]:
    """Yield each call with its last result, which belongs to the nearest row before it that calls by that id."""
    caller: dict[str, int] = {}
    results: dict[tuple[int, str], Message] = {}
    for index, row in enumerate(rows):
        if row.role is Role.ASSISTANT:
            caller.update((call.id, index) for call in row.tool_calls)
        elif row.role is Role.TOOL and row.tool_call_id in caller:
            results[caller[row.tool_call_id], row.tool_call_id] = row
    for index, row in enumerate(rows):
        if row.role is Role.ASSISTANT:
            yield from ((call, results.get((index, call.id))) for call in row.tool_calls)


def _written_file(call: ToolCall) -> str:
    return clipped(_argument(call, _PATHS), LONGEST_PATH) if _is_like(call, _WRITERS) else ""


def _published(call: ToolCall) -> str:
    title = clipped(_argument(call, _TITLES), LONGEST_PATH) if _is_like(call, _PUBLISHERS) else ""
    return f"{clipped(call.name, LONGEST_TOOL)}: {title}" if title else ""


def _command(call: ToolCall, result: Message | None) -> str:
    if not _is_like(call, _SHELLS):
        return ""
    found = _object(call.arguments)
    words = next((words for name in _COMMANDS if isinstance(words := found.get(name), list)), [])
    command = clipped(_argument(call, _COMMANDS) or " ".join(map(str, words)), LONGEST_COMMAND)
    return f"{command} [{_outcome(result)}]" if command else ""


def _is_like(call: ToolCall, words: Sequence[str]) -> bool:
    name = call.name.lower()
    return any(word in name for word in words)


def _argument(call: ToolCall, names: Sequence[str]) -> str:
    """Return the first of these arguments that says something."""
    found = _object(call.arguments)
    return next((text for name in names if isinstance(text := found.get(name), str) and text.strip()), "")


def _outcome(result: Message | None) -> str:
    if result is None or result.kind is Kind.INTERRUPTED:
        return "no result"
    text = result.text.strip()
    fields = _object(text)
    if code := next((code for name in _CODES if type(code := fields.get(name)) is int), None):
        return f"exit {code}"
    if fields:
        has_failed = fields.get("error") or fields.get("ok") is False or fields.get("success") is False
        return "error" if has_failed or fields.get("status") == "error" else "ok"
    # A shell's own line on how it ended is its first or its last; one in between is the program's output.
    lines = text.splitlines()
    codes = [int(found[1]) for line in {*lines[:1], *lines[-1:]} if (found := _EXIT.fullmatch(line))]
    if any(codes):
        return f"exit {next(filter(None, codes))}"
    return "error" if not codes and text.lower().startswith(_FAILURES) else "ok"


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _distinct(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))
