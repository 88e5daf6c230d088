"""Words of other people inside Markdown of ours, so that they cannot break out of their place."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Sequence

from gateway.domain.text import one_line, visible

_SPECIAL = re.compile(r"([\\`*_\[\]<>~&])")
_FENCE = re.compile(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))")
_FENCE_END = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#.-]{1,20}")
_LINE_ENDS = str.maketrans({"\u2028": "\n", "\u2029": "\n"})


def inline(text: str) -> str:
    """Return text for the middle of a line: on one line, and without a meaning in Markdown."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def quoted(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines as a quotation."""
    for line in lines:
        yield f"> {line}".rstrip()


def prose(text: str) -> Iterator[str]:
    """Yield the lines of a message, for a quotation: Markdown as it came, but no HTML, and each fence closed."""
    kept: list[str] = []
    closing, language = "", ""
    for line in _safe(text).split("\n"):
        outside = _without_tabs(line)
        mark = _FENCE.fullmatch(outside)
        if closing and _closes(line, closing):
            yield from fenced(kept, language)
            kept, closing = [], ""
        elif closing:
            kept.append(line)
        elif mark:
            closing, language = mark[1] or mark[3], _language(mark[2] or mark[4] or "")
        else:
            yield outside.replace("<", "&lt;")
    if closing:
        yield from fenced(kept, language)


def fenced(lines: Sequence[str], language: str = "") -> Iterator[str]:
    """Yield the lines in a fence that is longer than any in them."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", fence + language, *lines, fence, "")


def data_block(text: str) -> Iterator[str]:
    """Yield data in a fence: JSON spread over lines, anything else as it is."""
    try:
        spread = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return fenced(_safe(text).split("\n"))
    return fenced(_safe(spread).split("\n"), "json")


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are shown when somebody asks for them."""
    # Markdown leaves what stands between tags on one line as it is, so the summary is escaped as HTML.
    yield from ("", f"<details><summary>{html.escape(one_line(summary))}</summary>", *lines, "</details>")


def _safe(text: str) -> str:
    return visible(text).translate(_LINE_ENDS)


def _language(info: str) -> str:
    found = _LANGUAGE.match(info.strip())
    return found[0] if found else ""


def _closes(line: str, fence: str) -> bool:
    end = _FENCE_END.fullmatch(line)
    return end is not None and end[1].startswith(fence)


def _without_tabs(line: str) -> str:
    """Return the line indented by spaces: behind the sign of a quotation a tab is as wide as two, and no code."""
    words = line.lstrip(" \t")
    return line[: len(line) - len(words)].expandtabs(4) + words
