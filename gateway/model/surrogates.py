"""Makes any text one that can be sent and stored.

A character outside the first 65,536 is two halves in JSON and in UTF-16. A platform or a provider that cuts a text
between them leaves a half that no UTF-8 can hold.
"""

from __future__ import annotations


def whole(text: str) -> str:
    """Return `text` with the halves of a character joined, and a replacement character for a half on its own."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Joiner:
    """Joins a character whose halves come in two pieces of a stream."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        """Return what can be shown now; the first half of a character waits for the second."""
        text, self._half = self._half + piece, ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return whole(text)

    def end(self) -> str:
        """Return what is left over once no more comes."""
        return whole(self._half)
