"""The chats of the loopback Telegram: who is in them, and what the bot showed there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.loopback.telegram_rules import Refusal, bad_request, check_entities, check_text

Params = Mapping[str, str]


@dataclass
class Message:
    """A message as it is now; `is_ours` says that the bot wrote it."""

    id: int
    text: str
    entities: list[dict[str, Any]] = field(default_factory=list)
    topic: int | None = None
    reply_to: int | None = None
    is_ours: bool = True


@dataclass
class Chat:
    """A chat with its messages by id."""

    id: int
    type: str
    name: str
    topics: set[int] = field(default_factory=set)
    is_blocked: bool = False
    messages: dict[int, Message] = field(default_factory=dict)
    last_id: int = 0

    def add(self, text: str, **facts: Any) -> Message:
        """Add a message under the next id."""
        self.last_id += 1
        message = self.messages[self.last_id] = Message(self.last_id, text, **facts)
        return message

    def described(self) -> dict[str, Any]:
        """Return the chat as the Bot API writes it."""
        if self.type == "private":
            return {"id": self.id, "type": "private", "first_name": self.name, "username": self.name.lower()}
        extra = {"is_forum": True} if self.topics else {}
        return {"id": self.id, "type": self.type, "title": self.name, **extra}


class Chats:
    """All chats, and the methods of the Bot API that act on them."""

    def __init__(self, bot: Mapping[str, Any]) -> None:
        self._bot = bot
        self._chats: dict[int, Chat] = {}
        self.typing: list[tuple[int, int | None]] = []
        self.answers: list[dict[str, str]] = []

    def open(self, id: int, type: str, name: str, topic: int | None = None) -> Chat:
        """Return a chat, made if need be."""
        chat = self._chats.setdefault(id, Chat(id, type, name))
        if topic is not None:
            chat.topics.add(topic)
        return chat

    def get(self, id: int) -> Chat:
        """Return a chat that exists."""
        return self._chats[id]

    def shown(self, id: int, topic: int | None) -> list[Message]:
        """Return what the bot shows in a chat or topic, in order."""
        messages = self._chats[id].messages.values() if id in self._chats else ()
        return [message for message in messages if message.is_ours and message.topic == topic]

    def send_message(self, params: Params) -> dict[str, Any]:
        """Show a new message."""
        chat, text, entities = self._reachable(params), params.get("text", ""), _entities(params)
        check_text(text)
        check_entities(text, entities)
        topic = _topic(chat, params)
        message = chat.add(text, entities=entities, topic=topic, reply_to=_reply(chat, params))
        return self.described(chat, message)

    def edit_message_text(self, params: Params) -> dict[str, Any]:
        """Change a message."""
        chat, text, entities = self._reachable(params), params.get("text", ""), _entities(params)
        message = chat.messages.get(int(params["message_id"]))
        if message is None:
            raise bad_request("message to edit not found")
        if not message.is_ours:
            raise bad_request("message can't be edited")
        check_text(text)
        check_entities(text, entities)
        if (message.text, message.entities) == (text, entities):
            raise bad_request("message is not modified: specified new message content is exactly the same")
        message.text, message.entities = text, entities
        return self.described(chat, message)

    def delete_message(self, params: Params) -> bool:
        """Take a message away."""
        chat = self._reachable(params)
        if chat.messages.pop(int(params["message_id"]), None) is None:
            raise bad_request("message to delete not found")
        return True

    def send_chat_action(self, params: Params) -> bool:
        """Show that the bot types."""
        chat = self._reachable(params)
        self.typing.append((chat.id, _topic(chat, params)))
        return True

    def answer_callback_query(self, params: Params) -> bool:
        """Acknowledge a pressed button."""
        self.answers.append(dict(params))
        return True

    def described(self, chat: Chat, message: Message) -> dict[str, Any]:
        """Return a message of the bot as the Bot API writes it."""
        topic = {"message_thread_id": message.topic, "is_topic_message": True} if message.topic else {}
        date = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp())
        shown = {"message_id": message.id, "date": date, "chat": chat.described(), "text": message.text}
        return {**shown, "from": dict(self._bot), "entities": message.entities, **topic}

    def _reachable(self, params: Params) -> Chat:
        try:
            chat = self._chats[int(params["chat_id"])]
        except (KeyError, ValueError):
            raise bad_request("chat not found") from None
        if chat.is_blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        return chat


def _entities(params: Params) -> list[dict[str, Any]]:
    if params.get("parse_mode"):
        raise bad_request("this server takes entities, and no parse mode")
    return list(json.loads(params.get("entities") or "[]"))


def _topic(chat: Chat, params: Params) -> int | None:
    if not params.get("message_thread_id"):
        return None
    topic = int(params["message_thread_id"])
    if topic not in chat.topics:
        raise bad_request("message thread not found")
    return topic


def _reply(chat: Chat, params: Params) -> int | None:
    reply = json.loads(params.get("reply_parameters") or "{}")
    if not reply:
        return None
    if reply["message_id"] in chat.messages:
        return int(reply["message_id"])
    if not reply.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return None
