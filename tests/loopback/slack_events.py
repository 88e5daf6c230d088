"""What the loopback Slack announces, as the Events API writes it."""

from __future__ import annotations

from typing import Any

from tests.loopback.slack_world import APP_ID, BOT_USER, TEAM, Chat, SlackMessage, World


def callback(world: World, event: dict[str, Any]) -> dict[str, Any]:
    """Return the payload around an event."""
    return {
        "token": "verification",
        "team_id": TEAM,
        "api_app_id": APP_ID,
        "type": "event_callback",
        "event": event,
        "event_id": world.next_id("Ev"),
        "event_time": int(world.next_ts().split(".")[0]),
        "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
    }


def posted(kind: str, chat: Chat, message: SlackMessage, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the event of a new message, as `message` or `app_mention`; `fields` go into it."""
    event: dict[str, Any] = {"type": kind, "user": message.user, "text": message.raw, "ts": message.ts}
    event |= {"channel": chat.id, "event_ts": message.ts, "team": TEAM}
    event |= {"thread_ts": message.thread_ts} if message.thread_ts else {}
    # app_mention tells neither the type of its channel nor a subtype.
    event |= {"channel_type": chat.kind} if kind == "message" else {}
    if message.files:
        event |= {"files": message.files, **({"subtype": "file_share"} if kind == "message" else {})}
    return event | fields


def edited(world: World, chat: Chat, message: SlackMessage, text: str) -> dict[str, Any]:
    """Return the event of a message that its author changed."""
    before, ts = message.as_json(with_metadata=False), world.next_ts()
    after = {**before, "text": text, "edited": {"user": message.user, "ts": ts}}
    return {**_news("message_changed", chat, ts), "message": after, "previous_message": before}


def deleted(world: World, chat: Chat, message: SlackMessage) -> dict[str, Any]:
    """Return the event of a message that its author took away."""
    before = message.as_json(with_metadata=False)
    return {**_news("message_deleted", chat, world.next_ts()), "deleted_ts": message.ts, "previous_message": before}


def reacted(world: World, chat: Chat, message: SlackMessage, user: str) -> dict[str, Any]:
    """Return the event of a person who put an emoji under a message."""
    item = {"type": "message", "channel": chat.id, "ts": message.ts}
    return {"type": "reaction_added", "user": user, "reaction": "eyes", "item": item, "event_ts": world.next_ts()}


def clicked(world: World, chat: Chat, message: SlackMessage, user: str) -> dict[str, Any]:
    """Return the payload of a person who pressed a button under a message."""
    action = {"type": "button", "action_id": "pick", "value": "yes", "action_ts": world.next_ts()}
    place = {"channel": {"id": chat.id}, "message": message.as_json(with_metadata=False)}
    return {"type": "block_actions", "team": {"id": TEAM}, "user": {"id": user}, "actions": [action], **place}


def commanded(chat: Chat, user: str, command: str, text: str) -> dict[str, Any]:
    """Return the payload of a slash command."""
    return {"team_id": TEAM, "channel_id": chat.id, "user_id": user, "command": command, "text": text}


def _news(subtype: str, chat: Chat, ts: str) -> dict[str, Any]:
    news = {"type": "message", "subtype": subtype, "hidden": True, "channel": chat.id, "channel_type": chat.kind}
    return {**news, "ts": ts, "event_ts": ts}
