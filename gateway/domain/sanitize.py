"""Taking our own machinery's traces out of text that people or models see again.

A model that was shown "[Message Time: …]", "[image: /path]" or the text of a tool call tends to repeat it. Such lines
are removed outside code only: what stands in a fence is the person's or the model's own work.
"""

from __future__ import annotations

import re

_TIME = re.compile(r"\A\s*\[Message Time:[^\]\n]*\][ \t]*\n?")
_IMAGE = re.compile(r"\s*\[image:\s*[/~][^\]\n]*\]\s*")
_CALL = re.compile(r"\s*(?:generate_image|message)\([^)\n]*\)\s*")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_THINK = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.DOTALL)
_OPEN_THINK = re.compile(r"\A\s*<(?:think|thinking|thought)>")
_ORPHAN = re.compile(r"\A\s*</(?:think|thinking|thought)>\s*|\s*</(?:think|thinking|thought)>\s*\Z")


def sanitized(text: str) -> str:
    """Return the text without echoes of our framing; code fences are left as they are."""
    kept: list[str] = []
    fence = ""
    for line in _TIME.sub("", text).split("\n"):
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark[1]
        if fence or not (_IMAGE.fullmatch(line) or _CALL.fullmatch(line)):
            kept.append(line)
    return "\n".join(kept).strip()


def without_thinking(text: str) -> str:
    """Return finished text without inline thinking: closed blocks, an unclosed one at its start, orphan ends."""
    text = _THINK.sub("", text)
    return "" if _OPEN_THINK.match(text) else _ORPHAN.sub("", text).strip()
