"""The one text form of announcements that older stores hold, read as fields.

It is a header line `[Subagent 'label' …]`, `Task:`, `Result:`, and an instruction to the model at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_RESULT = re.compile(r"\nresult:\n|\nresult:", re.IGNORECASE)
_INSTRUCTION = re.compile(r"summarize this naturally", re.IGNORECASE)
_HEADER = re.compile(r"\[Subagent '(?P<label>.*)' (?P<status>[^'\n]*)\][ \t]*(?:\n|\Z)")
_TASK = re.compile(r"\s*task:[ \t]*\n?", re.IGNORECASE)
_OWN_RESULT = re.compile(r"\n\nResult:\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """What a child told at its end."""

    label: str
    status: str
    task: str = ""
    result: str = ""


def header_of(label: str, status: str) -> str:
    """Return the line that people are shown above what a child told."""
    return f"[Subagent '{' '.join(label.split())}' {' '.join(status.split())}]"


def parse_announcement(text: str) -> Announcement | None:
    """Return the fields of an announcement in the text form of older stores, or None for any other text."""
    text = text.replace("\r\n", "\n").strip()
    header = _HEADER.match(text)
    if header is None:
        return None
    task, result = parted(text[header.end() :])
    return Announcement(label=header["label"], status=header["status"].strip(), task=task, result=result)


def parted(body: str) -> tuple[str, str]:
    """Return the task and the result in what follows an announcement's header.

    Neither is escaped in it, so where several `Result:` could part them, it is the last that stands alone on its line
    after a blank one, as the form has it, or else the last at all: a task never shows up as a result, though the first
    part of a result that repeats the marker is read as the task's. The instruction is the last too.
    """
    body = "\n" + body
    if closing := list(_INSTRUCTION.finditer(body)):
        body = body[: closing[-1].start()].rstrip()
    parting = (list(_OWN_RESULT.finditer(body + "\n")) or list(_RESULT.finditer(body)))[-1:]
    task = body[: parting[0].start()] if parting else body
    task = _TASK.sub("", task, count=1).strip() if _TASK.match(task) else task.strip()
    return task, body[parting[0].end() :].strip() if parting else ""


def told(text: str) -> tuple[str, str]:
    """Return the header and the result of an announcement that is only text; the text itself if it has neither."""
    text = text.replace("\r\n", "\n").strip()
    fields = parse_announcement(text)
    if fields is not None:
        return header_of(fields.label, fields.status), fields.result
    first = text.split("\n", 1)[0]
    header = first if first.startswith("[Subagent") else ""
    found = _RESULT.search(text)
    if found is None:
        return (header, "") if header else ("", text)
    body = text[found.end() :].lstrip()
    if (end := _INSTRUCTION.search(body)) is not None:
        body = body[: end.start()].rstrip()
    return header, body.strip()
