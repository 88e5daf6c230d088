"""What a loopback model is asked, what it answers, and the ways in which it fails."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Fault(StrEnum):
    """What goes wrong with the next request, after its history was judged."""

    UNAUTHORIZED = "unauthorized"
    """HTTP 401, as for a wrong key."""
    RATE_LIMITED = "rate limited"
    """HTTP 429 with `retry-after: 7`, and word not to try again by itself."""
    QUOTA = "quota"
    """The account has no credit left: OpenAI's 429 `insufficient_quota`, Anthropic's 402 `billing_error`."""
    SERVER_ERROR = "server error"
    """HTTP 500."""
    OVERLOADED = "overloaded"
    """OpenAI's HTTP 503, Anthropic's 529."""
    OVERFLOW = "overflow"
    """HTTP 400: the history is longer than the context window."""
    NO_MODEL = "no model"
    """HTTP 404: no model of this name."""
    FILTER_REFUSED = "filter refused"
    """HTTP 400 of a content filter, before any answer."""
    THINKING_REFUSED = "thinking refused"
    """HTTP 400 about the thinking that was sent back."""
    REFUSED = "refused"
    """HTTP 400 about something else."""
    SILENT = "silent"
    """Takes the request and never says a word."""
    HUNG_UP = "hung up"
    """Drops the connection before any answer."""
    DROPPED = "dropped"
    """Drops the connection after the first words."""
    CUT_OFF = "cut off"
    """Ends the stream properly after the first words, with no reason for finishing."""
    STALLED = "stalled"
    """Says the first words, then nothing, with the connection open."""
    WAITING = "waiting"
    """Opens the stream and keeps the connection warm, but never says a word."""
    PINGING = "pinging"
    """Says the first words, then only keeps the connection warm."""
    ERROR_IN_STREAM = "error in stream"
    """Says the first words, then an error event."""
    GARBLED = "garbled"
    """Says the first words, then a line that is not JSON."""


STATUS_FAULTS = frozenset(
    {
        Fault.UNAUTHORIZED, Fault.RATE_LIMITED, Fault.QUOTA, Fault.SERVER_ERROR, Fault.OVERLOADED, Fault.OVERFLOW,
        Fault.NO_MODEL, Fault.FILTER_REFUSED, Fault.THINKING_REFUSED, Fault.REFUSED,
    }
)  # fmt: skip
"""Faults that are an HTTP status with an error body."""


_OURS = re.compile(r"^\[(?:from|context): [^\n]*\n?", re.MULTILINE)


def spoken(content: Any) -> str:
    """Return what a person or the bot said in a message, without the lines that the gateway adds for the model."""
    return _OURS.sub("", text_of(content)).strip()


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call in an answer; `arguments` given as text goes out as it is, broken or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def raw(self) -> str:
        """The arguments as JSON text."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the model says. `text` None is a null content; `finish` is stop, length, filter or refusal, with tools by
    itself; any other word goes out as it is. OpenAI's refusal is words of its own kind, before an ordinary stop.

    Token counts that are None are made up from the sizes of the texts.
    """

    text: str | None = ""
    thinking: str = ""
    redacted: str = ""
    calls: Sequence[Call] = ()
    finish: str = "stop"
    input_tokens: int | None = None
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int | None = None

    @property
    def deltas(self) -> list[str]:
        """The text in the pieces in which it is streamed: word by word."""
        return re.findall(r"\s*\S+\s*", self.text or "") or ([self.text] if self.text else [])


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request as it came: `style` is openai or anthropic, `body` the parsed JSON."""

    style: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model"))

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The history."""
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @property
    def tools(self) -> list[str]:
        """The names of the tools on offer."""
        return [tool.get("function", tool)["name"] for tool in self.body.get("tools") or []]

    @property
    def system(self) -> str:
        """The system prompt, wherever this style keeps it."""
        if self.style == "anthropic":
            return text_of(self.body.get("system"))
        return "\n\n".join(text_of(m["content"]) for m in self.messages if m["role"] in ("system", "developer"))

    @property
    def last_user(self) -> str:
        """What a person wrote in the newest message, without the lines that the gateway adds for the model."""
        for message in reversed(self.messages):
            if message["role"] == "user" and (text := spoken(message["content"])):
                return text
        return ""

    @property
    def results(self) -> list[str]:
        """The tool results that this request adds: those after the last answer, oldest first."""
        found: list[str] = []
        for message in self.messages:
            if message["role"] == "assistant":
                found = []
            elif message["role"] == "tool":
                found.append(text_of(message["content"]))
            elif isinstance(message["content"], list):
                found += [text_of(b.get("content")) for b in message["content"] if b.get("type") == "tool_result"]
        return found

    @property
    def size(self) -> int:
        """The characters of the history as JSON."""
        return len(json.dumps(self.messages, ensure_ascii=False)) + len(self.system)


@dataclass(frozen=True)
class Problem:
    """Why a history is illegal, in the words of the provider; `where` is the parameter at fault."""

    message: str
    where: str | None = None
    code: str | None = None


def text_of(content: Any) -> str:
    """Return the text of a content, whether it is a string or blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(block["text"] for block in content if block.get("type") == "text")
    return ""
