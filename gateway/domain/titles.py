"""Titles and previews: what a session is called in a list.

A title somebody wrote wins for ever, then one that was generated, then the first line of the first message.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from gateway.domain.errors import Refused
from gateway.domain.message import Kind, Message, Role
from gateway.domain.scrub import for_people, words_of
from gateway.domain.text import whole

LONGEST_TITLE = 120
LONGEST_FIRST_LINE = 60
LONGEST_PREVIEW = 120
ROWS_LOOKED_AT = 200
"""How far into a session a preview is looked for."""

_QUOTES = "\"' \u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"

NO_TOPIC = "NO TOPIC"
"""What a model answers, when asked for a title, to a conversation that has no subject yet."""

TITLE_PROMPT = (
    "Name the conversation below in four or five words, in its own language, without quotation marks or a full stop. "
    f"If it is only a greeting, answer {NO_TOPIC}."
)


class TitleSource(IntEnum):
    """Where a title comes from; a higher source is never replaced by a lower one."""

    NONE = 0
    FIRST_LINE = 1
    GENERATED = 2
    EDITED = 3


def edited_title(text: str) -> str:
    """Return what a person wrote as a title: on one line, at most 120 characters; raise `Refused` if it is blank."""
    title = " ".join(text.split())
    if not title:
        raise Refused("expected a title, got nothing")
    return title[:LONGEST_TITLE].rstrip()


def first_line_title(text: str) -> str:
    """Return the first line of a message that says something, at most 60 characters."""
    line = next((line for line in for_people(text).split("\n") if line.strip()), "")
    return " ".join(line.split())[:LONGEST_FIRST_LINE].rstrip()


def generated_title(answer: str) -> str | None:
    """Return the title in a model's answer, or None if it holds none."""
    title = " ".join(for_people(answer).split()).strip(_QUOTES).removesuffix(".")
    if not title or title.upper() == NO_TOPIC or len(title) > 80:
        return None
    return title[:LONGEST_FIRST_LINE].rstrip()


def preview_text(text: str) -> str:
    """Return the beginning of a text on one line, at most 120 characters."""
    return _beginning(for_people(whole(text)))


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_PREVIEW else line[: LONGEST_PREVIEW - 1].rstrip() + "…"


def preview(rows: Iterable[Message]) -> str:
    """Return the first words of a person in a session's first rows, else of the bot; hidden rows do not count."""
    fallback = ""
    for row in rows:
        if row.marks or row.kind in (Kind.COMMAND, Kind.NOTICE, Kind.INTERRUPTED):
            continue
        text = _beginning(whole(words_of(row))) if row.kind is Kind.ANNOUNCEMENT else preview_text(row.text)
        if row.role is Role.USER and text:
            return text
        if row.role is Role.ASSISTANT and not fallback:
            fallback = text
    return fallback
