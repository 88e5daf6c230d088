"""Where the thinking that a model wrote into its text ends, read piece by piece."""

from __future__ import annotations

from gateway.domain.sanitize import LONGEST_LINE, OPENINGS


class Thinking:
    """What stands after a tag that begins thinking, up to the closing tag of its own; between backticks both are words.

    Tags of the same name within it come in pairs. If one has no partner it was a word, and the first closing tag is the
    end; so it is taken to be where the last partner is not there `LONGEST_LINE` characters later, for an answer cannot
    be held back for ever.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.is_over = False
        self.is_closed = False
        """Whether a closing tag has come, be it that of a tag within."""
        self._depth = 1
        self._read: list[str] = []
        self._length = 0

    def unsettled(self) -> str:
        """Return what was read and is not thinking if no more comes."""
        return "".join(("" if self.is_closed else self.tag, *self._read))

    def read(self, text: str, at: int, *, is_last: bool) -> tuple[str, int]:
        """Return where what follows the thinking begins and in which text; while it lasts, what to read again."""
        begin = at
        for found in OPENINGS[self.tag].finditer(text, at):
            start, end = found.span()
            may_be_word = start > 0 and text[start - 1] == "`"
            if may_be_word and end == len(text) and not is_last:
                break
            if self.is_closed and self._length + end - begin > LONGEST_LINE:
                break
            at = end
            if may_be_word and text.startswith("`", end):
                continue
            is_closing = text[start + 1] == "/"
            self._depth += -1 if is_closing else 1
            if not self._depth:
                self.is_over = True
                return text, end
            if is_closing and not self.is_closed:
                self.is_closed, begin = True, end
                self._forget()
        if self.is_closed and self._length + len(text) - begin > LONGEST_LINE:
            self.is_over = True
            return ("".join((*self._read, text[begin:])), 0) if self._read else (text, begin)
        # A closing tag is one longer than the other, and a backtick may stand before it.
        at = max(at, len(text) - len(self.tag) - 2)
        self._read.append(text[begin:at])
        self._length += at - begin
        return text, at

    def _forget(self) -> None:
        self._read.clear()
        self._length = 0
