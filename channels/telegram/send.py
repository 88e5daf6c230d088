"""The sending half: what is shown to people, one call of the Bot API each."""

from __future__ import annotations

from collections.abc import Sequence

from loguru import logger
from telegram import Bot, LinkPreviewOptions, MessageEntity, ReplyParameters
from telegram.constants import ChatAction
from telegram.error import BadRequest

from channels.telegram.events import callback_id
from channels.telegram.failures import asking, delivering, is_unchanged
from gateway.domain.errors import Gone, NotDone
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.outbound import Part, Ref

_NO_PREVIEW = LinkPreviewOptions(is_disabled=True)
_LONGEST_ANSWER = 200
"""What Telegram shows at most when a button was pressed."""


class Messenger:
    """Shows, changes and takes away messages."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    async def post(self, to: Route, part: Part) -> Ref:
        """Show a new message; one for a single person in that person's own chat only."""
        if part.is_private and part.details["only_for"] != to.chat_id:
            raise NotDone("a shared chat has no message for one person only", fatal=True)
        entities = _entities(part)
        async with delivering():
            message = await self._bot.send_message(
                _chat(to),
                part.text,
                entities=entities,
                message_thread_id=_thread(to),
                reply_parameters=_reply(to),
                link_preview_options=_NO_PREVIEW,
            )
        return Ref(id=str(message.message_id))

    async def put(self, to: Route, ref: Ref, part: Part) -> Ref:
        """Make a message show `part`; that it does so already is success."""
        entities = _entities(part)
        async with delivering():
            try:
                await self._bot.edit_message_text(
                    part.text,
                    chat_id=_chat(to),
                    message_id=_message(ref),
                    entities=entities,
                    link_preview_options=_NO_PREVIEW,
                )
            except BadRequest as error:
                if not is_unchanged(error):
                    raise
        return ref

    async def drop(self, to: Route, ref: Ref) -> None:
        """Take a message away; that it is gone already is success."""
        try:
            async with delivering():
                await self._bot.delete_message(_chat(to), _message(ref))
        except Gone:
            return

    async def show_typing(self, to: Route) -> None:
        """Show "typing" for the five seconds that Telegram does."""
        async with delivering():
            await self._bot.send_chat_action(_chat(to), ChatAction.TYPING, message_thread_id=_thread(to))

    async def answer(self, choice: Inbound, reply: str) -> None:
        """Acknowledge a pressed button; when it is too late for Telegram to take that, nothing is lost."""
        async with asking():
            try:
                await self._bot.answer_callback_query(callback_id(choice), text=reply[:_LONGEST_ANSWER] or None)
            except BadRequest as error:
                logger.bind(channel=choice.route.channel, error=str(error)).debug("choice not acknowledged")


def _chat(to: Route) -> int:
    return _number(to.chat_id, "chat id")


def _message(ref: Ref) -> int:
    return _number(ref.id, "message id")


def _thread(to: Route) -> int | None:
    return None if to.thread is None else _number(to.thread, "topic id")


def _reply(to: Route) -> ReplyParameters | None:
    if to.reply_to is None:
        return None
    # Without the permission, an answer is lost when the question was deleted meanwhile.
    return ReplyParameters(_number(to.reply_to, "message id"), allow_sending_without_reply=True)


def _entities(part: Part) -> Sequence[MessageEntity]:
    return MessageEntity.de_list(list(part.details.get("entities", ())), None)


def _number(text: str, what: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise NotDone(f"{what} of another platform", fatal=True) from error
