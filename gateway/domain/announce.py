"""What people are shown of a child's announcement.

Announcements are kept as fields; this reads the one text form that older stores hold: a header line
`[Subagent 'label' …]`, `Task:`, `Result:`, and an instruction to the model at the end.
"""

from __future__ import annotations

import re

LONGEST = 800
_RESULT = re.compile(r"\nresult:\n|\nresult:", re.IGNORECASE)
_INSTRUCTION = re.compile(r"summarize this naturally", re.IGNORECASE)


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
