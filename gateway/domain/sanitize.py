"""Which lines, tags and fences of a text are our machinery's: the tables that scrubbing works by.

A line is ours only if all of it is: a file with a path or a reference, a speaker with an id, a report, the moment, the
text of a tool call. A link, a box that is ticked, a footnote and "[image: a cat]" are somebody's own words. Closing
tags of thinking count as blanks around such a line, since they vanish at the ends of a text. "[context]" alone is not
ours: we write that word with what it tells behind it, and an INI file or a page of prose may well have it as a heading.
"""

from __future__ import annotations

import re

LONGEST_LINE = 4_200
"""No line of ours is longer: a path has 4,096 characters at most."""

_TAGS = ("think", "thinking", "thought")
OPENINGS = {f"<{tag}>": re.compile(f"</?{tag}>") for tag in _TAGS}
"""The tags that begin thinking, and where those of the same name stand."""
_BLANKS = (*(f"</{tag}>" for tag in _TAGS), "<thinking/>")
_CHANNELS = ("<channel>", "<|channel|>", "<|channel>", "<channel|>")
"""What some models begin their answer with; it is no more than that anywhere else."""
_UNFINISHED = frozenset(tag[:end] for tag in (*OPENINGS, *_BLANKS, *_CHANNELS) for end in range(1, len(tag)))
LONGEST_TAG = max(map(len, (*OPENINGS, *_BLANKS, *_CHANNELS)))


def _begun(words: str, rest: str) -> str:
    """Return a pattern for any beginning of the words, and of the rest where all of them are there."""
    for character in reversed(words):
        rest = f"(?:{re.escape(character)}{rest})?"
    return rest


_B = rf"(?:\s|{'|'.join(_BLANKS)})*"
_LEAD = rf"(?:\s|{'|'.join(map(re.escape, (*_BLANKS, *_CHANNELS)))})*"
_KIND = "image|photo|picture|audio|voice|video|animation|sticker|document|file"
# A place to go on from is looked for once: whichever it is, what may follow is the same.
_PATH = (
    r"(?>(?:[/~]|\.{1,2}/|[a-z]:[\\/]|\\\\|file:/|[^\]\n]*[\s(\"'=](?:/[^\s/\]]{1,255}/|~/|[a-z]:\\|file:/))[^\]\n]*)"
)
_PARTED = r"(?>[^\]\n]*? · [^\]\n]*)"
_TIME = r"\[message time:[^\]`\n]*\]"
_BRACKETS = "|".join(
    (
        rf"(?:{_KIND}):\s*+{_PATH}",
        rf"(?:{_KIND}):(?:(?>[^\]\n]*? · ref [^\]\n]+)|[^\]\n]* · not kept, cannot be viewed)",
        rf"from: (?:{_PARTED}|[^\s\]\d]*\d[^\s\]]*)",
        rf"announcement: {_PARTED}",
        r"compacted: (?:the earlier part of this conversation|end\.)[^\]\n]*",
        r"context: (?:a picture cannot be viewed here|(?>.*?\d{4}-\d\d-\d\d \d\d:\d\d UTC).*)",
        r"[^\[\]:\n]{1,40} attachment: @[^\]\n]*",
        r"… \d+ characters left out …",
    )
)
_ARGUMENTS = r"\s*(?:\w+\s*=|[\"'{\[]).*"
_OURS = re.compile(
    rf"{_LEAD}(?:(?i:{_TIME}|\[(?:{_BRACKETS})\])|(?:message|generate_image)\((?:[^)\n]*|{_ARGUMENTS})\)){_B}"
)
_HEADS = rf"(?:{_KIND}|from|announcement|compacted|message time|[^\[\]:\n]{{1,40}} attachment)"
_BRACKETS_BEGUN = "|".join(
    (
        r"[^\[\]:\n]{0,52}",
        rf"(?i:{_HEADS}):[^\]\n]*(?:\]{_B})?",
        r"(?i:context):.*",
        rf"… \d+ characters left out …\]{_B}",
        r"Subagent '.*",
    )
)
_UNSEEN = r"(?:[^\S\r\n]|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff])*"
_BREAKS = r"\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
IMITATION = re.compile(
    rf"(?:^|(?<=[{_BREAKS}]))(?={_UNSEEN}[\[\uff3b]{_UNSEEN}/?{_UNSEEN}"
    rf"(?:(?:{_KIND}|from|announcement|compacted|context|message\s+time|subagent|[^\[\]:{_BREAKS}]{{0,40}}attachment)\b|…))",
    re.IGNORECASE,
)
"""Where a line begins that a model could take for one of ours, in a text of somebody else."""
_CALL_BEGUN = rf"(?:\((?:[^)\n]*(?:\){_B})?|{_ARGUMENTS}))?"
_MAY_BE_OURS = re.compile(
    rf"{_LEAD}(?:\[(?:{_BRACKETS_BEGUN})|{_begun('message', _CALL_BEGUN)}|{_begun('generate_image', _CALL_BEGUN)})?"
)
_HEADER = re.compile(rf"{_LEAD}\[(?:Subagent '.*' [^'\n]*|(?i:announcement): {_PARTED})\]{_B}")
_TIME_AT_START = re.compile(rf"{_LEAD}(?i:{_TIME})")

_ITEM = r"(?:(?:[-*+]|\d{1,9}[.)])\s+)*"
_MARK = re.compile(rf"{_LEAD}{_ITEM}(`{{3,}}|~{{3,}})")
_MAY_BE_MARK = re.compile(rf"{_LEAD}{_ITEM}(?:[-*+]|\d{{1,9}}[.)]?|`{{1,2}}|~{{1,2}})?")
_QUOTED = re.compile(r"\s*>")
_INDENTED = re.compile(r" {0,3}\t| {4}")
_CLOSE = re.compile(r"\s*(`{3,}|~{3,})\s*")
_MAY_BE_CLOSE = re.compile(r"\s*(?:`*|~*)\s*")

_BLANK = re.compile(_B)
_BLANK_LEAD = re.compile(_LEAD)
_BLANK_BACKWARDS = re.compile(rf"(?:\s|{'|'.join(tag[::-1] for tag in _BLANKS)})*")

_THINK = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.DOTALL)
_OPEN_THINK = re.compile(r"\A\s*<(?:think|thinking|thought)>")
_ORPHAN = re.compile(r"\A\s*</(?:think|thinking|thought)>\s*|\s*</(?:think|thinking|thought)>\s*\Z")


def without_thinking(text: str) -> str:
    """Return a title as nanobot shows it: without closed blocks, an unclosed one at its start, orphan ends."""
    text = _THINK.sub("", text)
    return "" if _OPEN_THINK.match(text) else _ORPHAN.sub("", text).strip()


def is_ours(line: str) -> bool:
    """Tell whether a whole line outside code is an echo of one of ours."""
    return len(line) <= LONGEST_LINE and _OURS.fullmatch(line) is not None


def is_header(line: str) -> bool:
    """Tell whether a whole line outside code is the header of an announcement, in our form or that of older stores."""
    return len(line) <= LONGEST_LINE and _HEADER.fullmatch(line) is not None


def may_be_ours(line: str) -> bool:
    """Tell whether a line that goes on may become one of ours."""
    return len(line) <= LONGEST_LINE and _MAY_BE_OURS.fullmatch(line[: unfinished(line)]) is not None


def after_time(line: str, *, keeps_tags: bool) -> str:
    """Return the first line of a text without the moments and the blanks before it."""
    while True:
        line = line.lstrip() if keeps_tags else line[blank_start(line) :]
        found = _TIME_AT_START.match(line[:LONGEST_LINE])
        if found is None:
            return line
        line = line[found.end() :]


def unfinished(text: str) -> int:
    """Return where a tag begins that the text ends within, or the text's length."""
    at = text.rfind("<", -LONGEST_TAG)
    return at if at >= 0 and text[at:] in _UNFINISHED else len(text)


def blank_start(text: str) -> int:
    """Return how much of the beginning of a text is nothing to see: spaces, orphan tags."""
    found = _BLANK_LEAD.match(text)
    return found.end() if found else 0


def _blank_end(text: str) -> int:
    found = _BLANK_BACKWARDS.match(text[::-1])
    return len(text) - (found.end() if found else 0)


def is_quoted(line: str) -> bool:
    """Tell whether a line is a quotation."""
    return _QUOTED.match(line[:LONGEST_LINE]) is not None


def is_indented(line: str) -> bool:
    """Tell whether a line begins as one of code without a fence does."""
    return _INDENTED.match(line) is not None


def fence_mark(line: str) -> int:
    """Return where the mark of a fence that the line begins with ends, or 0."""
    found = _MARK.match(line[:LONGEST_LINE])
    return found.end() if found else 0


def may_decide_fence(line: str, fence: str) -> bool:
    """Tell whether a line that goes on may yet begin a fence, or end the one that is open."""
    pattern = _MAY_BE_CLOSE if fence else _MAY_BE_MARK
    return len(line) <= LONGEST_LINE and pattern.fullmatch(line) is not None


def fence_after(line: str, fence: str) -> str:
    """Return the mark of the fence that is open after a line, given the one before it."""
    if len(line) > LONGEST_LINE:
        return fence
    if fence:
        closing = _CLOSE.fullmatch(line)
        return "" if closing and closing[1].startswith(fence) else fence
    opening = _MARK.match(line)
    # What follows on a line with three backticks or more and holds a backtick is code within the line.
    return "" if opening is None or (opening[1][0] == "`" and "`" in line[opening.end() :]) else opening[1]


class Blanks:
    """Leaves out what cannot be seen at both ends of a text: spaces, and outside code orphan tags."""

    def __init__(self) -> None:
        self._has_begun = False
        self._blank: list[str] = []
        self._held = ""

    @property
    def is_at_start(self) -> bool:
        """Whether nothing that can be seen came so far."""
        return not (self._has_begun or self._held)

    def add(self, text: str, *, is_code: bool) -> str:
        """Return the text with the blanks before it, and without those it ends with, which are kept for later."""
        text, self._held = self._held + text, ""
        if not self._has_begun:
            text = text.lstrip() if is_code else text[blank_start(text) :]
        if not is_code:
            held = unfinished(text)
            text, self._held = text[:held], text[held:]
        end = len(text.rstrip()) if is_code else _blank_end(text)
        if not end:
            self._blank.append(text)
            return ""
        out = "".join((*self._blank, text[:end]))
        self._has_begun, self._blank = True, [text[end:]]
        return out

    def end(self) -> str:
        """Return a tag that never became whole, with the blanks before it."""
        return "".join((*self._blank, self._held)) if self._held else ""
