"""Lines of a bot's words that echo ours, taken out of them piece by piece."""

from __future__ import annotations

from gateway.domain.sanitize import (
    LONGEST_LINE,
    Blanks,
    after_time,
    blank_start,
    fence_after,
    fence_mark,
    is_header,
    is_indented,
    is_ours,
    is_quoted,
    may_be_ours,
    may_decide_fence,
)

_SCAFFOLDING = ("task:", "result:")


class Lines:
    """Drops lines that are ours, outside code. A line is held back for as long as it may become one."""

    def __init__(self, *, only_lines: bool = False) -> None:
        self.blanks = Blanks()
        self._only_lines = only_lines
        self._line: str | None = ""
        """The line so far, or None once nothing that may follow in it matters."""
        self._shown = 0
        self._fence = ""
        self._begins_fence = False
        self._is_left = False
        """Whether the line is left as it is: a quotation's, or one of code without a fence."""
        self._may_indent = False
        self._heading: str | None = None
        """What follows the header of an announcement, while it is not known whether that is a task."""
        self._report: list[str] | None = None

    @property
    def is_code(self) -> bool:
        """Whether what comes next is left as it is."""
        return bool(self._fence) or self._begins_fence or self._is_left or self._report is not None

    @property
    def begins_line(self) -> bool:
        """Whether nothing that can be seen came in the line so far."""
        line = self._line if self._heading is None else self._heading.rpartition("\n")[2]
        return line is not None and blank_start(line) == len(line)

    @property
    def is_at_start(self) -> bool:
        """Whether nothing that can be seen came so far."""
        return self.blanks.is_at_start and self.begins_line and not (self._heading or "").strip()

    def feed(self, text: str) -> str:
        """Return what of the lines so far can be shown."""
        out: list[str] = []
        at = 0
        while at < len(text) and self._report is None:
            end = text.find("\n", at) + 1 or len(text)
            out.append(self._piece(text[at:end]) if self._heading is None else self._follow(text[at:end]))
            at = end
        if self._report is not None:
            self._report.append(text[at:])
        return "".join(out)

    def finish(self) -> str:
        """Return what was held back of the last line."""
        heading, self._heading = self._heading, None
        out = self.feed(heading) if heading else ""
        out += self._end_line("")
        self._heading, self._may_indent = None, False
        return out

    def reported(self) -> str | None:
        """Return what followed the header of an announcement, once."""
        report, self._report = self._report, None
        return None if report is None else "".join(report)

    def _follow(self, piece: str) -> str:
        heading = (self._heading or "") + piece
        said = heading.lstrip()
        is_long = len(heading) - len(said) > LONGEST_LINE
        if not is_long and any(word.startswith(said.lower()) for word in _SCAFFOLDING):
            self._heading = heading
            return ""
        self._heading = None
        if not is_long and said.lower().startswith(_SCAFFOLDING):
            self._report = [heading]
            return ""
        return self.feed(heading)

    def _piece(self, piece: str) -> str:
        body = piece.removesuffix("\n")
        if self._line is not None:
            self._line += body
        if self._fence or self._begins_fence:
            out = self._show(body, is_code=True)
            if self._fence and self._line is not None and not may_decide_fence(self._line, self._fence):
                self._line = None
        else:
            out = self._prose(body)
        if self._line is not None and len(self._line) > LONGEST_LINE:
            self._line = None
        return out if body is piece else out + self._end_line("\n")

    def _prose(self, body: str) -> str:
        if self._line is None:
            return self._show(body, is_code=self._is_left)
        if not self._shown and self.blanks.is_at_start:
            self._line = after_time(self._line, keeps_tags=self._only_lines)
        line, shown = self._line, self._shown
        if mark := fence_mark(line):
            self._begins_fence = True
            return self._show(line[shown:mark]) + self._show(line[mark:], is_code=True)
        if not self._is_left:
            self._leave(line)
        if not (shown or self._is_left) and may_be_ours(line):
            return ""
        self._shown = len(line)
        if not may_decide_fence(line, ""):
            self._line = None
        return self._show(line[shown:], is_code=self._is_left)

    def _leave(self, line: str) -> None:
        """Look whether the line is to be left as it is. At the start of a text the spaces before code vanish."""
        if self._may_indent and is_indented(line) and not self.blanks.is_at_start:
            self._is_left = True
        elif is_quoted(line):
            self._is_left, self._may_indent = True, False

    def _end_line(self, end: str) -> str:
        line, shown, was_mark, was_left = self._line, self._shown, self._begins_fence, self._is_left
        self._line, self._shown, self._begins_fence, self._is_left = "", 0, False, False
        is_prose = not (self._fence or was_mark)
        self._may_indent = is_prose and ((was_left and self._may_indent) or (line is not None and not line.strip()))
        if not is_prose:
            self._fence = self._fence if line is None else fence_after(line, self._fence)
            return self._show(end, is_code=True)
        if line is None or shown:
            return self._show(end)
        if is_header(line) and not self._only_lines:
            self._heading = ""
            return ""
        return "" if is_ours(line) else self._show(line + end)

    def _show(self, text: str, *, is_code: bool = False) -> str:
        return self.blanks.add(text, is_code=is_code or self._only_lines)
