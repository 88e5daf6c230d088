"""What a stored row looks like to the model: who spoke, what came with it, and nothing that could be taken for ours.

Rows hold what was said; the lines that tell the model of people, files and reports are made here, from columns, the
same way each time, so that a row reads the same in every turn. A line of ours begins with one of the words below in
brackets, and a line of anybody else's that looks like one gets a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gateway.domain.announce import parse_announcement
from gateway.domain.message import Attachment, Content, Kind, MediaRef, Message, Role, Sender
from gateway.domain.sanitize import IMITATION
from gateway.domain.scrub import for_model
from gateway.domain.text import size

MOST_ATTACHMENTS = 8
LONGEST_NAME = 80
LONGEST_TASK = 2_000
"""Characters of a child's task that its report repeats to the model."""

STOPPED = "[context: the person stopped this before it was answered; do not answer it unless asked again]"
"""What the model reads where somebody said stop."""

_MAY_ECHO = re.compile(r"[\[<]|message\(|generate_image\(|\A\s|\s\Z")
"""What any echo holds; most answers hold none of it, and need no closer look."""
_BRACKETS = str.maketrans("[]\uff3b\uff3d·;", "()()-,")


def decorated(row: Message, *, runtime_context: bool = True) -> Message:
    """Return the row as the model reads it; most rows are returned as they are."""
    if row.kind is Kind.ANNOUNCEMENT and row.role in (Role.USER, Role.ASSISTANT):
        return replace(row, role=Role.USER, content=announced(row), media=(), attachments=())
    if row.role is Role.USER and row.kind is Kind.INTERRUPTED:
        return replace(row, content=STOPPED)
    if row.role is Role.USER:
        return _user(row, runtime_context)
    if row.role is Role.TOOL:
        content = _neutral_content(row.content)
        return row if content is row.content else replace(row, content=content)
    if row.role is Role.ASSISTANT and isinstance(row.content, str) and _MAY_ECHO.search(row.content):
        text = for_model(row.content)
        return row if text == row.content else replace(row, content=text)
    return row


def label_of(media: MediaRef) -> str:
    """Return the line that stands for a file: what it is, and by which reference it can be opened again."""
    facts = [named(_base_name(media.name)) or "without a name"]
    if media.width and media.height:
        facts.append(f"{media.width}\N{MULTIPLICATION SIGN}{media.height}")
    if media.size_bytes is not None:
        facts.append(size(media.size_bytes))
    facts.append(f"ref {named(media.ref)}" if media.is_kept else "not kept, cannot be viewed")
    return f"[{named(media.kind) or 'file'}: {' · '.join(facts)}]"


def announced(row: Message) -> str:
    """Return the report of a child as the model reads it, from its fields, or from those its text holds."""
    fields = row.extra.get("announcement")
    if not isinstance(fields, Mapping):
        found = parse_announcement(row.text)
        if found is None:
            return neutral(row.text)
        fields = asdict(found)
    label, status = (named(str(fields.get(name) or "")) for name in ("label", "status"))
    task = str(fields.get("task") or "")[:LONGEST_TASK]
    pieces = [f"[announcement: {label or 'a task'} · {status or 'ended'}]"]
    pieces += [f"Task:\n{neutral(task)}"] if task else []
    pieces += [f"Result:\n{neutral(str(fields.get('result') or ''))}"]
    return "\n\n".join(pieces)


def neutral(text: str) -> str:
    """Return the text with a backslash before each line that imitates one of ours."""
    return IMITATION.sub(r"\\", text) if "[" in text or "\uff3b" in text else text


def _user(row: Message, runtime_context: bool) -> Message:
    above = [_speaker(row.sender)] if row.sender is not None and row.sender.shared else []
    below = [*map(label_of, row.media), *map(_attached, row.attachments[:MOST_ATTACHMENTS])]
    context = row.runtime_context if runtime_context else None
    content = _neutral_content(row.content)
    if not (above or below or context) and content is row.content:
        return row
    return replace(row, content=_around(content, above, below, context))


def _neutral_content(content: Content) -> Content:
    if content is None:
        return None
    if isinstance(content, str):
        text = neutral(content)
        return content if text == content else text
    blocks = [_neutral_block(block) for block in content]
    return content if all(after is before for after, before in zip(blocks, content, strict=True)) else blocks


def _neutral_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    text = block.get("text")
    if not isinstance(text, str) or (said := neutral(text)) == text:
        return block
    return {**block, "text": said}


def _around(content: Content, above: Sequence[str], below: Sequence[str], context: str | None) -> Content:
    if content is None or isinstance(content, str):
        lines = "\n".join([*above, *([content] if content else []), *below])
        return "\n\n".join(piece for piece in (lines, context) if piece)
    return [*_text_blocks(above), *content, *_text_blocks(below), *_text_blocks([context] if context else [])]


def _text_blocks(lines: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    if lines:
        yield {"type": "text", "text": "\n".join(lines)}


def _speaker(sender: Sender) -> str:
    name = named(sender.name)
    return f"[from: {name} · {named(sender.id)}]" if name else f"[from: {named(sender.id)}]"


def _attached(attachment: Attachment) -> str:
    facts = [f"@{named(attachment.name)}"]
    facts += [f"{named(name)}={named(value)}" for name, value in attachment.details.items()]
    return f"[{named(attachment.kind)} Attachment: {'; '.join(facts)}]"


def named(text: str) -> str:
    """Return a name as part of one of our lines: on one line, without brackets, without what cannot be seen."""
    shown = "".join(character if character.isprintable() else " " for character in text.translate(_BRACKETS))
    return " ".join(shown.split())[:LONGEST_NAME].rstrip()


def _base_name(name: str) -> str:
    """Return the last part of what may be a path: where a file lay on some server is nobody's business."""
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]
