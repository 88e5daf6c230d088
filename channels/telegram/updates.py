"""The parts of Telegram's updates that we read.

Only what we use is declared, so that a new field or a changed one elsewhere never costs a message.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from gateway.domain.text import whole

LAST_SECOND = 253_402_300_799
"""The last second a datetime can hold."""

Text = Annotated[str, AfterValidator(whole)]
"""What JSON can hold and no store takes is replaced."""
Moment = Annotated[int, Field(ge=0, le=LAST_SECOND)]


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class User(_Read):
    """A person or bot."""

    id: int
    is_bot: bool = False
    first_name: Text = ""
    last_name: Text = ""
    username: Text = ""


class Chat(_Read):
    """A chat; `type` is `private`, `group`, `supergroup` or `channel`."""

    id: int
    type: Text
    title: Text = ""
    first_name: Text = ""
    last_name: Text = ""
    username: Text = ""


class Entity(_Read):
    """A stretch of a text that means something, counted in UTF-16 units."""

    type: Text
    offset: Annotated[int, Field(ge=0)]
    length: Annotated[int, Field(ge=0)]
    user: User | None = None


class File(_Read):
    """A file that came with a message, of any kind."""

    file_id: Annotated[Text, Field(min_length=1)]
    file_size: int | None = None
    mime_type: Text = ""
    file_name: Text = ""


class Quoted(_Read):
    """The message that another one replies to."""

    sender: Annotated[User | None, Field(alias="from")] = None


class Message(_Read):
    """A message; in a callback query it may be no more than its id and chat."""

    message_id: int
    date: Moment
    chat: Chat
    sender: Annotated[User | None, Field(alias="from")] = None
    sender_chat: Chat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    is_automatic_forward: bool = False
    business_connection_id: Text | None = None
    edit_date: Moment | None = None
    reply_to_message: Quoted | None = None
    text: Text | None = None
    entities: tuple[Entity, ...] = ()
    caption: Text | None = None
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[File, ...] = ()
    animation: File | None = None
    audio: File | None = None
    document: File | None = None
    video: File | None = None
    video_note: File | None = None
    voice: File | None = None


class CallbackQuery(_Read):
    """A button that was pressed."""

    id: Annotated[Text, Field(min_length=1)]
    sender: Annotated[User, Field(alias="from")]
    message: Message | None = None
    data: Text = ""


class Update(_Read):
    """One event; all but one of its optional fields are empty."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: CallbackQuery | None = None
    channel_post: Any = None
    edited_channel_post: Any = None
    business_message: Any = None
    edited_business_message: Any = None
