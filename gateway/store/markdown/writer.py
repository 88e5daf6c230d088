"""A session as Markdown, for people to read.

All that was said stands in quotes, below a heading that says who and when, so that no words can pass for the heading of
somebody else. Outside code no word of a message is HTML, and code stands in fences of our own making. Nothing internal
is shown: no runtime context, no thinking, no path of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from gateway.domain.message import Kind, Message, Role
from gateway.domain.scrub import words_of
from gateway.domain.session import Session
from gateway.ports.sessions import SessionCopy
from gateway.store.markdown.fences import data_block, folded, inline, prose, quoted
from gateway.store.markdown.sizes import media_label

_HIDDEN = frozenset({Kind.COMMAND, Kind.NOTICE})
_BREAKS = {
    Kind.COMPACTED: "From here on, the bot knows what came before by a summary.",
    Kind.INTERRUPTED: "The answer was interrupted here.",
}
_BETWEEN = " · "
_WORDLESS = "*(no text)*"
_PICTURES = frozenset({"image", "image_url", "input_image"})


def lines(copy: SessionCopy, *, everything: bool = False) -> Iterator[str]:
    """Yield the lines of a session with their line ends.

    Rows with a mark, commands and notices are shown only with `everything`, each with why it is hidden.
    """
    for line in _head(copy):
        yield line + "\n"
    for row in copy.rows:
        if everything or not _why_hidden(row):
            for line in _row(row):
                yield line + "\n"
    if copy.attic:
        yield f"---\n\n*Rows that were moved to the attic and are not shown: {len(copy.attic)}.*\n"


def _head(copy: SessionCopy) -> Iterator[str]:
    session = copy.session
    yield f"# {inline(session.title or session.preview or 'Conversation')}"
    yield ""
    for name, fact in _facts(session):
        if fact:
            yield f"- {name}: {inline(fact)}"
    yield ""


def _facts(session: Session) -> Sequence[tuple[str, str]]:
    return [
        ("From", session.origin_label),
        ("Key", str(session.key)),
        ("Begun", _time(session.created_at)),
        ("Last used", _time(session.updated_at)),
        ("Closed", _time(session.closed_at)),
    ]


def _row(row: Message) -> Iterator[str]:
    if row.kind in _BREAKS and row.role is not Role.TOOL:
        yield from ("---", "", f"*{_BREAKS[row.kind]}*", "")
        return
    hidden = _why_hidden(row)
    pieces = (_who(row), _time(row.created_at), f"hidden: {inline(hidden)}" if hidden else "")
    yield f"### {_BETWEEN.join(piece for piece in pieces if piece)}"
    yield ""
    yield from quoted(_trimmed(list(_body(row))) or [_WORDLESS])
    yield ""


def _who(row: Message) -> str:
    """Return who speaks. A person's id stands beside the name, so that nobody is called what the bot is called."""
    if row.role is Role.TOOL:
        return f"Tool ({_named(row.name)})" if row.name else "Tool"
    if row.kind is Kind.ANNOUNCEMENT:
        return "Subagent"
    if row.role is Role.USER:
        return f"{_named(row.sender.name)} ({_named(row.sender.id)})".lstrip() if row.sender else "Person"
    return "System" if row.role is Role.SYSTEM else "Bot"


def _named(name: str) -> str:
    """Return a name for a heading, without the sign that parts a heading's pieces."""
    return inline(name.replace(_BETWEEN.strip(), " "))


def _why_hidden(row: Message) -> str:
    reasons = sorted(mark.value for mark in row.marks)
    return ", ".join([*reasons, *([row.kind.value] if row.kind in _HIDDEN else [])])


def _body(row: Message) -> Iterator[str]:
    if row.role is Role.TOOL:
        yield from folded("Result", data_block(row.text))
    else:
        yield from prose(words_of(row))
    for label in _labels(row):
        yield from ("", label)
    for call in row.tool_calls:
        yield from folded(f"Tool call: {call.name}", data_block(call.arguments))


def _trimmed(lines: list[str]) -> list[str]:
    """Return the lines without blank ones around them."""
    said = [place for place, line in enumerate(lines) if line.strip()]
    return lines[said[0] : said[-1] + 1] if said else []


def _labels(row: Message) -> Iterator[str]:
    """Yield what stands for each thing that came with the words."""
    if not isinstance(row.content, str):
        yield from ("[image]" for block in row.content or () if block.get("type") in _PICTURES)
    yield from (media_label(file) for file in row.media)
    yield from (f"[{inline(one.kind)}: {inline(one.name)}]" for one in row.attachments)


def _time(moment: datetime | None) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if moment else ""
