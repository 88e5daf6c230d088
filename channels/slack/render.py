"""What a message looks like on Slack: native Markdown in parts, with nothing in it that could call people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from channels.slack.split import split_markdown
from gateway.domain.outbound import Choice, Outbound, Part
from gateway.domain.text import whole

PART_LIMIT = 11_000
"""The most of one part: Slack takes 12,000 characters of Markdown, and an edit must still fit in all its forms."""

WORD_JOINER = "\u2060"
# Slack reads `<!channel>`, `<@U1>` and `<#C1>` as calls and links. They are written with a mark nobody sees inside,
# also where Markdown would only yield them after undoing an escape. Comments and doctypes are not Slack's.
_CALL = re.compile(r"(<|&lt;?|&#0*60;?|&#x0*3c;?)(?=\\?(?:[@#]|!(?!--|doctype|\[)))", re.IGNORECASE)


def render(outbound: Outbound) -> Sequence[Part]:
    """Return the parts that show a message; none for a blank one."""
    text = neutralised(whole(_with_choices(outbound.text, outbound.choices)))
    details: Mapping[str, Any] = {"markdown": True}
    if outbound.only_for:
        details = {**details, "only_for": outbound.only_for}
    return tuple(Part(text=part, plain=part, details=details) for part in split_markdown(text, PART_LIMIT))


def neutralised(text: str) -> str:
    """Return the text with every call of a person, a group or a channel made harmless; it looks the same."""
    return _CALL.sub(rf"\1{WORD_JOINER}", text)


def escaped(text: str) -> str:
    """Return the text as Slack's plain `text` field shows it literally."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _with_choices(text: str, choices: Sequence[Choice]) -> str:
    if not choices:
        return text
    lines = [f"{number}. {' '.join(choice.label.split())}" for number, choice in enumerate(choices, 1)]
    return "\n\n".join(piece for piece in (text.rstrip(), "\n".join(lines)) if piece.strip())
