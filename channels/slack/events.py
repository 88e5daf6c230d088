"""Slack's events reduced to what the gateway decides by. Pure, and never raises, whatever the payload.

`app_mention` and `message` announce the same post, so both become the same `Inbound` with the same `dedupe_key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from channels.slack.texts import mentions, readable, unescape
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin
from gateway.domain.text import whole

KIND = "slack"

_SHOWN = frozenset({"", "file_share", "thread_broadcast", "me_message"})
_SUBTYPES = """
    message_changed message_deleted message_replied bot_message bot_add bot_remove channel_join channel_leave
    channel_topic channel_purpose channel_name channel_archive channel_unarchive channel_posting_permissions
    channel_convert_to_private group_join group_leave group_topic group_purpose group_name group_archive group_unarchive
    ekm_access_denied reminder_add reply_broadcast pinned_item unpinned_item tombstone assistant_app_thread
    document_mention huddle_thread sh_room_created"""
_KNOWN_SUBTYPES = frozenset(_SUBTYPES.split())
_TS = re.compile(r"[0-9]{1,11}\.[0-9]{1,6}")
_ID = re.compile(r"[A-Za-z0-9_-]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who the bot is in its workspace, as `auth.test` told."""

    user_id: str
    bot_id: str
    team_id: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """An event that is none of ours; `reason` is one of a small set, to be counted."""

    reason: str


MALFORMED = Dropped("malformed")


def read_event(payload: object, who: Identity, channel_name: str) -> Inbound | Dropped:
    """Return what an `event_callback` payload tells, or why it is dropped."""
    event = _mapping(_mapping(payload).get("event"))
    if event.get("type") not in ("message", "app_mention"):
        return Dropped("not_a_message") if _text(event.get("type")) else MALFORMED
    if reason := _unwanted(event, who):
        return Dropped(reason)
    place = _place(event, channel_name)
    user, ts = _identifier(event.get("user")), _timestamp(event.get("ts"))
    if place is None or user is None or ts is None:
        return MALFORMED
    return _inbound(event, who, place, user, ts)


def _unwanted(event: Mapping[str, Any], who: Identity) -> str | None:
    """Return why a message is not for us: our own, another bot's, or news about the chat instead of words in it."""
    if event.get("user") == who.user_id or (who.bot_id and event.get("bot_id") == who.bot_id):
        return "own"
    subtype = event.get("subtype") or ""
    if event.get("bot_id") or event.get("bot_profile") or subtype == "bot_message" or event.get("user") == "USLACKBOT":
        return "other_bot"
    if not isinstance(subtype, str) or subtype not in _SHOWN:
        return f"subtype_{subtype if _text(subtype) in _KNOWN_SUBTYPES else 'other'}"
    return "hidden" if event.get("hidden") is True else None


@dataclass(frozen=True, slots=True)
class _Place:
    route: Route
    is_direct: bool


def _place(event: Mapping[str, Any], channel_name: str) -> _Place | None:
    """Return where the answer goes: a direct message stays at the root, a post in a channel starts its thread.

    There the post is both the thread and what is replied to, which tells it from a reply in a thread that goes on.
    """
    chat, ts, thread = _identifier(event.get("channel")), _timestamp(event.get("ts")), event.get("thread_ts")
    if chat is None or ts is None or (thread is not None and _timestamp(thread) is None):
        return None
    is_direct = chat.startswith("D") or event.get("channel_type") == "im"
    thread = (None if thread == ts else thread) if is_direct else thread or ts
    return _Place(Route(channel_name, chat, thread, reply_to=ts), is_direct)


def _inbound(event: Mapping[str, Any], who: Identity, place: _Place, user: str, ts: str) -> Inbound | Dropped:
    raw = whole(_words(event))
    text, media = readable(raw, who.user_id), tuple(_media(event.get("files")))
    if not text and not media:
        return Dropped("empty")
    sender, route = Sender(id=user, name=_name(event)), place.route
    return Inbound(
        kind=InboundKind.MESSAGE,
        route=route,
        dedupe_key=f"msg:{who.team_id}:{route.chat_id}:{ts}",
        sender=sender,
        sent_at=moment(ts),
        text=text,
        is_direct=place.is_direct,
        addresses_bot=place.is_direct or mentions(raw, who.user_id),
        media=media,
        origin=_origin(event, who, place, sender),
    )


def moment(ts: str) -> datetime:
    """Return the moment a Slack timestamp names, to the microsecond."""
    seconds, _, fraction = ts.partition(".")
    return _EPOCH + timedelta(seconds=int(seconds), microseconds=int(fraction.ljust(6, "0")))


def _origin(event: Mapping[str, Any], who: Identity, place: _Place, sender: Sender) -> Origin:
    route, chat_name = place.route, _text(event.get("channel_name")) or None
    label = f"@{sender.name or sender.id}" if place.is_direct else f"#{chat_name or route.chat_id} · {who.team_id}"
    return Origin(
        kind=KIND,
        label=label,
        tenant=who.team_id,
        chat_id=route.chat_id,
        chat_name=chat_name,
        thread=route.thread,
        actor=sender.id,
    )


def _words(event: Mapping[str, Any]) -> str:
    """Return the raw text with what was forwarded under it; the blocks stand in for a text that is missing."""
    text = _text(event.get("text"))
    if not text.strip():
        text = "\n".join(_block_words(event.get("blocks")))
    shared = [_quoted(_mapping(attachment)) for attachment in _sequence(event.get("attachments"))]
    return "\n".join(piece for piece in (text, *shared) if piece.strip())


def _quoted(attachment: Mapping[str, Any]) -> str:
    text = _text(attachment.get("text")) or _text(attachment.get("fallback"))
    author = _text(attachment.get("author_name"))
    return f"> {author + ': ' if author else ''}{text}".replace("\n", "\n> ") if text.strip() else ""


def _block_words(blocks: object) -> list[str]:
    """Return the texts inside blocks, in order, however deep; by a stack, since the depth is a stranger's choice."""
    words: list[str] = []
    waiting = list(reversed(_sequence(blocks)))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            text = item.get("text")
            words += [text] if isinstance(text, str) and text.strip() else []
            waiting += [*reversed(_sequence(item.get("elements"))), *([text] if isinstance(text, Mapping) else [])]
    return words


def _media(files: object) -> list[MediaRef]:
    return [ref for file in _sequence(files) if (ref := _media_ref(_mapping(file))) is not None]


def _media_ref(file: Mapping[str, Any]) -> MediaRef | None:
    """Return a file's reference; a deleted or hidden file has no address, and none is made up."""
    url, mime, size = whole(_text(file.get("url_private"))), whole(_text(file.get("mimetype"))), file.get("size")
    if not url:
        return None
    family = mime.partition("/")[0]
    return MediaRef(
        ref=url,
        kind=family if family in ("image", "audio", "video") else "file",
        name=whole(unescape(_text(file.get("name")))),
        mime=mime,
        size_bytes=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
    )


def _name(event: Mapping[str, Any]) -> str:
    profile = _mapping(event.get("user_profile"))
    found = (_text(profile.get(name)).strip() for name in ("display_name", "real_name", "name"))
    return whole(next((name for name in found if name), ""))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _identifier(value: object) -> str | None:
    return value if isinstance(value, str) and _ID.fullmatch(value) else None


def _timestamp(value: object) -> str | None:
    return value if isinstance(value, str) and _TS.fullmatch(value) else None
