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
from gateway.domain.echoes import Lines
from gateway.domain.message import Kind, Message, Role
from gateway.domain.sanitize import OPENINGS, unfinished
from gateway.domain.thinking import Thinking

LONGEST_REPORT = 800


def for_people(text: str) -> str:
    """Return finished words of the bot as a person may see them."""
    stream = Stream()
    return stream.feed(text) + stream.end()


def for_model(text: str) -> str:
    """Return an assistant's earlier words as a model may see them again: without lines that echo ours."""
    lines = Lines(only_lines=True)
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
        self._lines = Lines()
        self._held = ""
        self._thinking: Thinking | None = None
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
                self._thinking, at = Thinking(tag), at + len(tag)
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
