"""From an update of Telegram to an `Inbound`, or to the reason why it is dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pydantic import ValidationError

from channels.telegram.updates import CallbackQuery, Chat, File, Message, Update, User
from channels.telegram.words import Me, Words
from gateway.domain.errors import Refused
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef, Sender
from gateway.domain.origins import Origin

ALLOWED_UPDATES = ("message", "edited_message", "callback_query")
"""The kinds of update that `read` makes something of; Telegram is asked for no others."""


class Reason(StrEnum):
    """Why an update is dropped."""

    OWN = "own"
    OTHER_BOT = "other_bot"
    CHANNEL_POST = "channel_post"
    BUSINESS = "business"
    NO_CONTENT = "no_content"
    """Joins, pins and other service messages; also what holds neither text nor a file, like a place."""
    UNSUPPORTED = "unsupported"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Dropped:
    """An update that goes no further."""

    reason: Reason


def read(raw: object, channel: str, me: Me, received_at: datetime) -> Inbound | Dropped:
    """Return what an update says; never raises, whatever the update holds."""
    try:
        update = Update.model_validate(raw)
    except ValidationError:
        return Dropped(Reason.UNREADABLE)
    if update.callback_query:
        return _choice(update.callback_query, update.update_id, channel, received_at)
    if message := update.message or update.edited_message:
        return _objection(message, me) or _message(message, update, channel, me)
    return Dropped(_other_kind(update))


def callback_id(choice: Inbound) -> str:
    """Return the id by which Telegram wants a pressed button acknowledged."""
    _, _, query = choice.dedupe_key.partition(":")[2].partition(":")
    if choice.kind is not InboundKind.CHOICE or not query:
        raise Refused(f"expected the event of a pressed button, got {choice.dedupe_key!r}")
    return query


def _other_kind(update: Update) -> Reason:
    if update.channel_post or update.edited_channel_post:
        return Reason.CHANNEL_POST
    if update.business_message or update.edited_business_message:
        return Reason.BUSINESS
    return Reason.UNSUPPORTED


def _objection(message: Message, me: Me) -> Dropped | None:
    if message.business_connection_id:
        return Dropped(Reason.BUSINESS)
    if message.is_automatic_forward or message.chat.type == "channel":
        return Dropped(Reason.CHANNEL_POST)
    if message.sender and message.sender.id == me.id:
        return Dropped(Reason.OWN)
    # Who writes as a group or channel comes with a stand-in bot as sender, and is no bot.
    if message.sender and message.sender.is_bot and not message.sender_chat:
        return Dropped(Reason.OTHER_BOT)
    if not (message.sender or message.sender_chat):
        return Dropped(Reason.UNREADABLE)
    if not (message.text or message.caption or any(_media(message))):
        return Dropped(Reason.NO_CONTENT)
    return None


def _message(message: Message, update: Update, channel: str, me: Me) -> Inbound:
    words = Words(
        message.text or message.caption or "", message.entities if message.text else message.caption_entities, me
    )
    is_direct = message.chat.type == "private"
    is_edit = update.edited_message is not None
    kind = InboundKind.EDIT if is_edit else InboundKind.COMMAND if words.is_command else InboundKind.MESSAGE
    sender = _sender(message)
    return Inbound(
        kind=kind,
        route=_route(message, channel),
        dedupe_key=_name_of(message, update),
        sender=sender,
        sent_at=datetime.fromtimestamp(message.edit_date or message.date, UTC),
        text=words.spoken,
        is_direct=is_direct,
        addresses_bot=is_direct or _addresses(message, words, me),
        media=tuple(_media(message)),
        origin=_origin(message, sender),
        target=str(message.message_id) if is_edit else None,
    )


def _name_of(message: Message, update: Update) -> str:
    # After a week without updates, Telegram may start their numbers anywhere; so the number alone could come again.
    parts = [update.update_id, message.chat.id, message.message_id]
    edited = [] if update.edited_message is None else [message.edit_date or message.date]
    return ":".join(["upd", *map(str, parts + edited)])


def _choice(query: CallbackQuery, update_id: int, channel: str, received_at: datetime) -> Inbound | Dropped:
    message = query.message
    if message is None:
        return Dropped(Reason.UNSUPPORTED)
    if query.sender.is_bot:
        return Dropped(Reason.OTHER_BOT)
    sender = Sender(id=str(query.sender.id), name=_full_name(query.sender))
    return Inbound(
        kind=InboundKind.CHOICE,
        route=_route(message, channel),
        # The query's id is part of the key because the answer to a press must name it, perhaps from another process.
        dedupe_key=f"upd:{update_id}:{query.id}",
        sender=sender,
        sent_at=received_at,
        text=query.data,
        is_direct=message.chat.type == "private",
        addresses_bot=True,
        origin=_origin(message, sender),
        target=str(message.message_id),
    )


def _route(message: Message, channel: str) -> Route:
    is_direct = message.chat.type == "private"
    return Route(
        channel,
        str(message.chat.id),
        thread=None if is_direct else _topic(message),
        reply_to=None if is_direct else str(message.message_id),
    )


def _topic(message: Message) -> str | None:
    # Replies in an ordinary group carry a thread id too, which Telegram does not take back.
    if message.is_topic_message and message.message_thread_id is not None:
        return str(message.message_thread_id)
    return None


def _sender(message: Message) -> Sender:
    if message.sender_chat:
        return Sender(id=str(message.sender_chat.id), name=_chat_name(message.sender_chat))
    assert message.sender is not None  # _objection drops a message without any sender
    return Sender(id=str(message.sender.id), name=_full_name(message.sender))


def _origin(message: Message, sender: Sender) -> Origin:
    chat = message.chat
    name = _chat_name(chat)
    is_direct = chat.type == "private"
    return Origin(
        kind="telegram",
        label=f"@{chat.username}" if is_direct and chat.username else name,
        chat_id=str(chat.id),
        chat_name=name,
        thread=None if is_direct else _topic(message),
        actor=sender.id,
    )


def _chat_name(chat: Chat) -> str:
    return chat.title or _full_name(chat) or chat.username or str(chat.id)


def _full_name(who: User | Chat) -> str:
    return f"{who.first_name} {who.last_name}".strip()


def _addresses(message: Message, words: Words, me: Me) -> bool:
    if words.is_for_another:
        return False
    replied = message.reply_to_message.sender if message.reply_to_message else None
    return words.names_bot or (replied is not None and replied.id == me.id)


def _media(message: Message) -> Iterator[MediaRef]:
    if message.photo:
        largest = message.photo[-1]
        yield MediaRef(
            ref=largest.file_id, kind="image", name="photo.jpg", mime="image/jpeg", size_bytes=largest.file_size
        )
    # An animation is repeated as a document for clients that do not know animations.
    document = None if message.animation else message.document
    found = {
        "video": [message.animation, message.video, message.video_note],
        "audio": [message.voice, message.audio],
        "file": [document],
    }
    for kind, files in found.items():
        yield from (_file(kind, file) for file in files if file)


def _file(kind: str, file: File) -> MediaRef:
    kind = "image" if kind == "file" and file.mime_type.startswith("image/") else kind
    return MediaRef(ref=file.file_id, kind=kind, name=file.file_name, mime=file.mime_type, size_bytes=file.file_size)
