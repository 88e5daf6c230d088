"""A workspace as Slack keeps it: people, chats, messages, files. Knows nothing of HTTP."""

from __future__ import annotations

import itertools
import re
import time
from dataclasses import dataclass, field
from typing import Any

TEAM, BOT_USER, BOT_ID, APP_ID = "T0LOOP", "U0TRUNK", "B0TRUNK", "A0TRUNK"
_PING = re.compile(r"<(?:!(?:channel|here|everyone|subteam\^)|@[A-Z0-9])")


class SlackError(Exception):
    """An `{"ok": false, "error": …}` answer."""

    def __init__(self, code: str, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


@dataclass(kw_only=True)
class SlackMessage:
    """One message. `form` says which argument showed it; `text` is what a person sees."""

    ts: str
    user: str
    text: str
    raw: str
    thread_ts: str | None = None
    bot_id: str | None = None
    form: str = "text"
    metadata: dict[str, Any] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)
    edits: int = 0

    def as_json(self, with_metadata: bool) -> dict[str, Any]:
        """Return the message as the history methods tell it."""
        told: dict[str, Any] = {"type": "message", "ts": self.ts, "user": self.user, "text": self.raw, "team": TEAM}
        told |= {"thread_ts": self.thread_ts} if self.thread_ts else {}
        told |= {"bot_id": self.bot_id} if self.bot_id else {}
        told |= {"metadata": self.metadata} if with_metadata and self.metadata else {}
        told |= {"files": self.files} if self.files else {}
        return told


@dataclass(kw_only=True)
class Chat:
    """One conversation and what was said in it, oldest first."""

    id: str
    kind: str
    name: str = ""
    members: set[str] = field(default_factory=set)
    is_archived: bool = False
    messages: list[SlackMessage] = field(default_factory=list)
    private: list[tuple[str, SlackMessage]] = field(default_factory=list)

    def find(self, ts: str) -> SlackMessage | None:
        """Return the message with this timestamp."""
        return next((message for message in self.messages if message.ts == ts), None)

    def shown(self, thread: str | None) -> list[SlackMessage]:
        """Return what a person sees at the root of the chat, or in a thread with its first message."""
        if thread is None:
            return [message for message in self.messages if message.thread_ts in (None, message.ts)]
        return [message for message in self.messages if thread in (message.ts, message.thread_ts)]

    def shown_privately(self, user: str) -> list[SlackMessage]:
        """Return the notes that only this person sees; one in a thread is shown only where somebody has replied."""
        active = {None, *(message.thread_ts for message in self.messages if message.thread_ts != message.ts)}
        return [message for to, message in self.private if to == user and message.thread_ts in active]


class World:
    """The state of one workspace."""

    def __init__(self) -> None:
        self.users: dict[str, str] = {BOT_USER: "trunkline"}
        self.chats: dict[str, Chat] = {}
        self.files: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.statuses: dict[tuple[str, str], str] = {}
        self.pings: list[str] = []
        self._numbers = itertools.count(1)
        self._micros = 0

    def next_ts(self) -> str:
        """Return a timestamp of now that was never given before."""
        self._micros = max(self._micros + 1, time.time_ns() // 1000)
        return f"{self._micros // 1_000_000}.{self._micros % 1_000_000:06d}"

    def next_id(self, prefix: str) -> str:
        """Return a new identifier, such as `F0LOOP0001`."""
        return f"{prefix}0LOOP{next(self._numbers):04d}"

    def dm_of(self, user: str) -> Chat:
        """Return the direct chat of a person with the bot, opened if need be."""
        chat_id = f"D{user[1:]}"
        return self.chats.setdefault(chat_id, Chat(id=chat_id, kind="im", members={user, BOT_USER}))

    def chat(self, chat_id: object) -> Chat:
        """Return a chat the bot may use; raises what Slack answers otherwise."""
        chat = self.chats.get(str(chat_id))
        if chat is None:
            raise SlackError("channel_not_found")
        if chat.is_archived:
            raise SlackError("is_archived")
        if BOT_USER not in chat.members:
            raise SlackError("not_in_channel")
        return chat

    def add(self, chat: Chat, message: SlackMessage) -> SlackMessage:
        """Show a message; whatever status its thread had is cleared."""
        chat.messages.append(message)
        self.statuses.pop((chat.id, message.thread_ts or message.ts), None)
        self.note_pings(message)
        return message

    def note_pings(self, message: SlackMessage) -> None:
        """Remember the calls of people that a message of the bot would make."""
        if message.bot_id == BOT_ID:
            self.pings += _PING.findall(message.raw)


def typed(text: str) -> str:
    """Return what a person typed as Slack passes it on."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def untyped(text: str) -> str:
    """Return a text as Slack shows it literally."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
