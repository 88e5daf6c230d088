"""Text for a terminal or a pipe: what a message looks like there, in characters that the stream can carry."""

from __future__ import annotations

from gateway.domain.outbound import Outbound


def printable(text: str, encoding: str | None) -> str:
    """Return `text` with what the stream's encoding cannot carry written as an escape."""
    encoding = encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def lay_out(outbound: Outbound) -> str:
    """Return the text of a message: its words as they are, then its choices and the names of its files."""
    lines = [outbound.text] if outbound.text.strip() else []
    lines += [f"[{choice.id}] {choice.label}" for choice in outbound.choices]
    lines += [f"[{media.kind}: {media.name or media.mime or 'without a name'}]" for media in outbound.media]
    return "\n".join(lines)
