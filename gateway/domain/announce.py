"""What people are shown of a child's announcement.

Announcements are kept as fields; this reads the one text form that older stores hold: a header line
`[Subagent 'label' …]`, `Task:`, `Result:`, and an instruction to the model at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 800
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


def scrubbed(text: str) -> str:
    """Return the header and the result of an announcement, without task and instruction; other text unchanged."""
    text = text.replace("\r\n", "\n").strip()
    first = text.split("\n", 1)[0]
    header = first if first.startswith("[Subagent") else ""
    found = _RESULT.search(text)
    if found is None:
        return header or text
    body = text[found.end() :].lstrip()
    if (end := _INSTRUCTION.search(body)) is not None:
        body = body[: end.start()].rstrip()
    body = body.strip()
    if len(body) > LONGEST:
        body = body[: LONGEST - 1].rstrip() + "…"
    return "\n\n".join(piece for piece in (header, body) if piece) or text


def parse_announcement(text: str) -> Announcement | None:
    """Return the fields of an announcement in the text form of older stores, or None for any other text.

    Neither task nor result is escaped in it, so where several `Result:` could part them, it is the last that stands
    alone on its line after a blank one, as the form has it, or else the last at all: a task never shows up as a result,
    though the first part of a result that repeats the marker is read as the task's. The instruction is the last too.
    """
    text = text.replace("\r\n", "\n").strip()
    header = _HEADER.match(text)
    if header is None:
        return None
    body = "\n" + text[header.end() :]
    if closing := list(_INSTRUCTION.finditer(body)):
        body = body[: closing[-1].start()].rstrip()
    parting = (list(_OWN_RESULT.finditer(body + "\n")) or list(_RESULT.finditer(body)))[-1:]
    task = body[: parting[0].start()] if parting else body
    return Announcement(
        label=header["label"],
        status=header["status"].strip(),
        task=_TASK.sub("", task, count=1).strip() if _TASK.match(task) else task.strip(),
        result=body[parting[0].end() :].strip() if parting else "",
    )
