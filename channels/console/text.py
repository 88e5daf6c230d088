"""Text for a terminal: what a model wrote must be readable, and must not drive the terminal.

An escape sequence in an answer could set the window's title, write to the clipboard or hide a line, so every control
character but line end and tab is shown instead of sent.
"""

from __future__ import annotations

from gateway.domain.outbound import Outbound

_SHOWN = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Return `text` with every control character but line end and tab written as an escape."""
    return text.replace("\r\n", "\n").translate(_SHOWN)


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
