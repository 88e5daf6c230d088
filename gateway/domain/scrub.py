"""Taking our own machinery's traces out of text: thinking, echoes of the lines we write for models, announcements.

A model that is shown a line of ours tends to repeat it. What stands in a code fence is the person's or the model's own
work and is never touched, and a fence that does not end is code to the end. So are lines of a quotation, and those with
four spaces before them that follow a blank line, unless nothing was said before. Every surface that shows a bot's words
uses `for_people`, or `Stream` while they still come. The two are one machine of three stages (thinking, lines, blanks
around the whole), so what is shown early is always a beginning of what the finished text is shown as.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway.domain.announce import header_of, parted, told
from gateway.domain.message import Kind, Message, Role
from gateway.domain.sanitize import (
    LONGEST_LINE,
    OPENINGS,
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
    unfinished,
)

LONGEST_REPORT = 800
_SCAFFOLDING = ("task:", "result:")


def for_people(text: str) -> str:
    """Return finished words of the bot as a person may see them."""
    stream = Stream()
    return stream.feed(text) + stream.end()


def for_model(text: str) -> str:
    """Return an assistant's earlier words as a model may see them again: without lines that echo ours."""
    lines = _Lines(only_lines=True)
    return lines.feed(text) + lines.finish() + lines.blanks.end()


def words_of(row: Message) -> str:
    """Return the words of a row as a person may see them; a person's own are left as they are."""
    if row.kind is Kind.ANNOUNCEMENT:
        fields = row.extra.get("announcement")
        if isinstance(fields, Mapping) and isinstance(result := fields.get("result"), str):
            return _report(header_of(str(fields.get("label", "")), str(fields.get("status", ""))), result)
        return report(row.text)
    return for_people(row.text) if row.role is Role.ASSISTANT else row.text


def report(text: str) -> str:
    """Return an announcement that is only text as people see it: header and result, without task and instruction."""
    return _report(*told(text)) or for_people(text)


def _report(header: str, result: str) -> str:
    body = for_people(result)
    if len(body) > LONGEST_REPORT:
        body = body[: LONGEST_REPORT - 1].rstrip() + "…"
    return "\n\n".join(piece for piece in (header, body) if piece)


class Stream:
    """Shows a bot's words while they come: each piece gives what may be shown now, the end the rest.

    Thinking stands where models put it: its tag begins the text or a line, outside code. After words it is one of them,
    as in "the tags are <think> and </think>". Where no closing tag ever comes, thinking is the rest of a text that
    nothing was said in before, and otherwise the tag was only a word.
    """

    def __init__(self) -> None:
        self._lines = _Lines()
        self._held = ""
        self._thinking: _Thinking | None = None
        self._words: set[str] = set()
        self._is_over = False

    def feed(self, chunk: str) -> str:
        """Return what of the text so far can be shown and was not yet."""
        return self._take(chunk)

    def end(self) -> str:
        """Return what is left to show of the text, which ends here."""
        rest = self._settled("")
        while (body := self._lines.reported()) is not None:
            self._words = set()
            rest += self._settled(parted(body.replace("\r\n", "\n"))[1])
        return rest + self._lines.blanks.end()

    def _settled(self, text: str) -> str:
        """Take the last of a text, with every tag that was not closed as the word it is."""
        out = self._take(text, is_last=True)
        while (thinking := self._thinking) is not None:
            if not thinking.is_closed:
                self._words.add(thinking.tag)
            text, self._held, self._thinking = thinking.unsettled() + self._held, "", None
            out += self._take(text, is_last=True)
        return out + self._lines.finish()

    def _take(self, text: str, *, is_last: bool = False) -> str:
        text, self._held = self._held + text, ""
        out: list[str] = []
        at = 0
        while at < len(text) and not self._is_over:
            found = text.find("<", at)
            if self._thinking is not None:
                text, at = self._thinking.read(text, at, is_last=is_last)
                if self._thinking.is_over:
                    self._thinking = None
                else:
                    self._held, at = text[at:], len(text)
            elif found != at:
                out.append(self._lines.feed(text[at : found if found > 0 else len(text)]))
                at = found if found > 0 else len(text)
            elif (tag := self._tag(text, at, is_last)) is None:
                self._held, at = text[at:], len(text)
            elif tag:
                self._thinking, at = _Thinking(tag), at + len(tag)
            elif not self._is_over:
                out.append(self._lines.feed("<"))
                at += 1
        return "".join(out)

    def _tag(self, text: str, at: int, is_last: bool) -> str | None:
        """Return the tag that begins thinking here, nothing for a word, or None where that is not known yet."""
        if self._lines.is_code or not self._lines.begins_line:
            return ""
        tag = next((tag for tag in OPENINGS if text.startswith(tag, at)), "")
        if not tag:
            return None if not is_last and unfinished(text) == at < len(text) else ""
        if tag in self._words:
            self._is_over = self._lines.is_at_start
            return ""
        return tag


class _Thinking:
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


class _Lines:
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
