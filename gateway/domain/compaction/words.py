"""The words of a row as they are quoted outside the transcript: on one line, clipped, a mark for each picture."""

from __future__ import annotations

from gateway.domain.compaction.state import PICTURE
from gateway.domain.message import Message, pictures_in
from gateway.domain.text import last_cut

_PICTURES = frozenset({"image", "photo", "picture"})
LONGEST_KIND = 20


def one_line(text: str) -> str:
    """Return a text with all blanks between its words made one space each."""
    return " ".join(text.split())


def clipped(text: str, most: int) -> str:
    """Return a text on one line with at most this many characters; the last is an ellipsis where it was longer."""
    text = one_line(text)
    return text if len(text) <= most else text[: last_cut(text, 0, most - 1)].rstrip() + "…"


def written(row: Message) -> str:
    """Return what a person wrote in a row: the words, then a mark for each file that came with them."""
    marks = [PICTURE] * pictures_in(row)
    for media in row.media:
        kind = "".join(character for character in media.kind if character.isalnum())[:LONGEST_KIND]
        marks.append(PICTURE if media.kind in _PICTURES else f"[{kind or 'file'}]")
    return one_line(" ".join([row.text, *marks]))
