"""Slack's Web API over a `World`: arguments checked and errors told as the documentation says."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.loopback.slack_world import APP_ID, BOT_ID, BOT_USER, TEAM, Chat, SlackError, SlackMessage, World, untyped

Args = Mapping[str, Any]

MARKDOWN_LIMIT, TEXT_LIMIT, UPDATE_TEXT_LIMIT, METADATA_LIMIT = 12_000, 40_000, 4_000, 8_000
SCOPES = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "assistant.threads.setStatus": "assistant:write",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "conversations.info": "channels:read",
    "users.info": "users:read",
    "apps.connections.open": "connections:write",
}
_TS = re.compile(r"\d+\.\d+")


class WebApi:
    """Answers methods by name. `missing_scopes` are the scopes the tokens do not have."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.missing_scopes: set[str] = set()
        self.identity = {"team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT_ID}
        """Whose token it is, as auth.test tells."""
        self._methods: dict[str, Callable[[Args], dict[str, Any]]] = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "conversations.info": self._info,
            "users.info": self._user,
            "assistant.threads.setStatus": self._set_status,
        }

    def call(self, method: str, args: Args) -> dict[str, Any]:
        """Apply one call and return the fields of its answer; raises `SlackError`."""
        scope = SCOPES.get(method)
        if scope in self.missing_scopes:
            raise SlackError("missing_scope", needed=scope, provided="none")
        if method not in self._methods:
            raise SlackError("unknown_method", req_method=method)
        return self._methods[method](args)

    def _auth_test(self, args: Args) -> dict[str, Any]:
        names = {"url": "https://loopback.slack.com/", "team": "Loopback", "user": "trunkline"}
        return {**names, **self.identity, "is_enterprise_install": False}

    def _post(self, args: Args) -> dict[str, Any]:
        chat = self.world.chat(args.get("channel"))
        message = self._composed(chat, args, TEXT_LIMIT)
        message.metadata = _checked_metadata(args.get("metadata"))
        self.world.add(chat, message)
        return {"channel": chat.id, "ts": message.ts, "message": message.as_json(with_metadata=True)}

    def _post_ephemeral(self, args: Args) -> dict[str, Any]:
        chat, user = self.world.chat(args.get("channel")), str(args.get("user"))
        if user not in chat.members:
            raise SlackError("user_not_in_channel")
        message = self._composed(chat, args, TEXT_LIMIT)
        chat.private.append((user, message))
        return {"message_ts": message.ts}

    def _update(self, args: Args) -> dict[str, Any]:
        chat, message = self._own(args, "cant_update_message")
        new = self._composed(chat, {**args, "thread_ts": None}, UPDATE_TEXT_LIMIT)
        message.text, message.raw, message.form = new.text, new.raw, new.form
        message.edits += 1
        message.metadata = _checked_metadata(args.get("metadata")) or message.metadata
        self.world.note_pings(message)
        return {"channel": chat.id, "ts": message.ts, "text": message.raw}

    def _delete(self, args: Args) -> dict[str, Any]:
        chat, message = self._own(args, "cant_delete_message")
        chat.messages.remove(message)
        return {"channel": chat.id, "ts": message.ts}

    def _own(self, args: Args, refusal: str) -> tuple[Chat, SlackMessage]:
        chat = self.world.chat(args.get("channel"))
        message = chat.find(str(args.get("ts")))
        if message is None:
            raise SlackError("message_not_found")
        if message.bot_id != BOT_ID:
            raise SlackError(refusal)
        return chat, message

    def _composed(self, chat: Chat, args: Args, text_limit: int) -> SlackMessage:
        """Return the bot's message that the arguments describe, checked as Slack checks them."""
        form, raw = _body(args, text_limit)
        thread = args.get("thread_ts")
        if thread is not None:
            parent = chat.find(str(thread))
            if parent is None or parent.thread_ts not in (None, parent.ts):
                raise SlackError("thread_not_found")
        return SlackMessage(
            ts=self.world.next_ts(),
            user=BOT_USER,
            bot_id=BOT_ID,
            thread_ts=None if thread is None else str(thread),
            raw=raw,
            text=raw if form == "markdown_text" else untyped(raw),
            form=form,
        )

    def _history(self, args: Args) -> dict[str, Any]:
        chat = self.world.chat(args.get("channel"))
        found = [message for message in chat.shown(None) if _within(message.ts, args)]
        return _page(list(reversed(found)), args)

    def _replies(self, args: Args) -> dict[str, Any]:
        chat = self.world.chat(args.get("channel"))
        parent = chat.find(str(args.get("ts")))
        if parent is None:
            raise SlackError("thread_not_found")
        root = parent.thread_ts or parent.ts
        # Slack tells the first message of a thread whatever `oldest` says.
        return _page([m for m in chat.shown(root) if m.ts == root or _within(m.ts, args)], args)

    def _info(self, args: Args) -> dict[str, Any]:
        chat = self.world.chat(args.get("channel"))
        return {"channel": {"id": chat.id, "name": chat.name, "is_im": chat.kind == "im"}}

    def _user(self, args: Args) -> dict[str, Any]:
        user = str(args.get("user"))
        if user not in self.world.users:
            raise SlackError("user_not_found")
        return {"user": {"id": user, "name": self.world.users[user], "team_id": TEAM, "is_bot": user == BOT_USER}}

    def _set_status(self, args: Args) -> dict[str, Any]:
        chat, thread = self.world.chat(args.get("channel_id")), str(args.get("thread_ts"))
        if chat.find(thread) is None:
            raise SlackError("thread_not_found")
        if not isinstance(args.get("status"), str):
            raise SlackError("invalid_arguments")
        self.world.statuses[chat.id, thread] = args["status"]
        return {}


def _body(args: Args, text_limit: int) -> tuple[str, str]:
    """Return which argument shows the message, and its text."""
    markdown, text, blocks = args.get("markdown_text"), args.get("text"), args.get("blocks")
    if markdown is not None and (text is not None or blocks is not None):
        raise SlackError("markdown_text_conflict")
    if not any((markdown, text, blocks)):
        raise SlackError("no_text")
    if markdown is not None:
        if len(markdown) > MARKDOWN_LIMIT:
            raise SlackError("msg_too_long")
        return "markdown_text", markdown
    if len(text or "") > text_limit:
        raise SlackError("msg_too_long")
    return ("blocks" if blocks else "text"), text or ""


def _checked_metadata(metadata: Any) -> dict[str, Any] | None:
    if metadata is None:
        return None
    fine = isinstance(metadata, dict) and isinstance(metadata.get("event_type"), str)
    if not fine or not isinstance(metadata.get("event_payload"), dict):
        raise SlackError("invalid_metadata_format")
    if len(str(metadata)) > METADATA_LIMIT:
        raise SlackError("metadata_too_large")
    return metadata


def _within(ts: str, args: Args) -> bool:
    oldest, inclusive = str(args.get("oldest") or "0"), str(args.get("inclusive") or "0") in ("1", "true", "True")
    if not re.fullmatch(r"\d+(\.\d+)?", oldest):
        raise SlackError("invalid_ts_oldest")
    return _moment(ts) > _moment(oldest) or (inclusive and _moment(ts) == _moment(oldest))


def _moment(ts: str) -> tuple[int, int]:
    seconds, _, micros = ts.partition(".")
    return int(seconds), int(micros.ljust(6, "0") or 0)


def _page(messages: list[SlackMessage], args: Args) -> dict[str, Any]:
    limit, start = min(int(args.get("limit") or 100), 999), _position(args.get("cursor"))
    with_metadata = str(args.get("include_all_metadata") or "0") in ("1", "true", "True")
    following = start + limit
    more = following < len(messages)
    cursor = base64.b64encode(f"next:{following}".encode()).decode() if more else ""
    told = [message.as_json(with_metadata) for message in messages[start:following]]
    return {"messages": told, "has_more": more, "response_metadata": {"next_cursor": cursor}}


def _position(cursor: object) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.b64decode(str(cursor)).decode().removeprefix("next:"))
    except ValueError:
        raise SlackError("invalid_cursor") from None


__all__ = ["APP_ID", "Args", "WebApi"]
