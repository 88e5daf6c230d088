"""Showing messages on Slack, and asking Slack what it shows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from loguru import logger

from channels.slack.api import SlackApi
from channels.slack.events import Identity
from channels.slack.render import escaped
from gateway.domain.errors import Gone, NotDone
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.outbound import Part, Ref
from gateway.ports.channel import Presence

EVENT_TYPE = "trunkline"
SLACK_SECONDS = 5
"""How far Slack's clock and ours may be apart."""
PAGE = 200

_PRIVATE = "private/"
"""Begins the id of a message shown to one person only, which Slack can neither change, delete nor find."""
_NOWHERE = frozenset({"channel_not_found", "thread_not_found", "not_in_channel", "is_archived"})


class Outlet:
    """Shows, changes, removes and finds messages through one workspace's Web API."""

    def __init__(self, api: SlackApi, who: Identity) -> None:
        self._api = api
        self._who = who

    async def post(self, to: Route, part: Part, key: str) -> Ref:
        """Show a new message that carries `key`, or a note for one person, which can carry nothing."""
        user = part.details.get("only_for")
        if user and not _is_direct(to):
            return await self._note(to, str(user), _shown(part))
        answer = await self._api.write(
            "chat.postMessage",
            channel=to.chat_id,
            thread_ts=to.thread,
            metadata=_metadata(key),
            unfurl_links=False,
            unfurl_media=False,
            **_shown(part),
        )
        return Ref(id=str(answer.get("ts")))

    async def put(self, to: Route, ref: Ref, part: Part, old: Part | None, key: str) -> Ref:
        """Replace what a message shows; nothing is called for what is confirmed to be shown already."""
        if old is not None and old.hash == part.hash:
            return ref
        if ref.id.startswith(_PRIVATE):
            raise NotDone("cannot_change_a_private_note", fatal=True)
        await self._api.write("chat.update", channel=to.chat_id, ts=ref.id, metadata=_metadata(key), **_shown(part))
        return ref

    async def drop(self, to: Route, ref: Ref) -> None:
        """Delete a message; one that is deleted already is what was wanted."""
        if ref.id.startswith(_PRIVATE):
            raise NotDone("cannot_delete_a_private_note", fatal=True)
        try:
            await self._api.write("chat.delete", channel=to.chat_id, ts=ref.id)
        except Gone:
            logger.bind(chat=to.chat_id).debug("the message was deleted before")

    async def find(self, to: Route, key: str, since: datetime, known: Sequence[Ref]) -> Ref | None:
        """Return our message that carries `key`, unless it is one of `known`."""
        seen = {ref.id for ref in known}
        async for message in self._messages(to, since):
            if _carries(message, key) and message.get("bot_id") == self._who.bot_id and message.get("ts") not in seen:
                return Ref(id=str(message["ts"]))
        return None

    async def say_privately(self, choice: Inbound, reply: str) -> None:
        """Tell the person who picked a choice, and nobody else."""
        await self._note(choice.route, choice.sender.id, {"text": escaped(reply), "mrkdwn": False})

    async def show_presence(self, to: Route, state: Presence) -> None:
        """Show or clear a thread's status line; Slack has none outside threads."""
        if to.thread is None:
            return
        status = "is thinking…" if state is Presence.WORKING else ""
        await self._api.write("assistant.threads.setStatus", channel_id=to.chat_id, thread_ts=to.thread, status=status)

    async def _note(self, to: Route, user: str, shown: Mapping[str, Any]) -> Ref:
        # Slack shows a note in a thread only where somebody has replied. A post at the root of a chat may have none.
        thread = None if to.thread == to.reply_to else to.thread
        answer = await self._api.write("chat.postEphemeral", channel=to.chat_id, user=user, thread_ts=thread, **shown)
        return Ref(id=f"{_PRIVATE}{answer.get('message_ts')}")

    async def _messages(self, to: Route, since: datetime) -> AsyncIterator[Mapping[str, Any]]:
        """Yield what a thread, or the root of a chat, shows since then, page by page."""
        method = "conversations.history" if to.thread is None else "conversations.replies"
        oldest, cursor = f"{since.timestamp() - SLACK_SECONDS:.6f}", None
        while cursor != "":
            try:
                answer = await self._api.read(
                    method,
                    channel=to.chat_id,
                    ts=to.thread,
                    oldest=oldest,
                    inclusive=True,
                    include_all_metadata=True,
                    limit=PAGE,
                    cursor=cursor,
                )
            except NotDone as error:
                if error.code in _NOWHERE:
                    return
                raise
            for message in answer.get("messages") or []:
                yield message
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""


def _shown(part: Part) -> Mapping[str, Any]:
    """Return the fields that show a part: Markdown as rendered, or literal text for its plain form."""
    if part.details.get("markdown") and not part.is_plain:
        return {"markdown_text": part.text}
    return {"text": escaped(part.text), "mrkdwn": False, "parse": "none"}


def _metadata(key: str) -> Mapping[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"key": key}}


def _carries(message: Mapping[str, Any], key: str) -> bool:
    metadata = message.get("metadata") or {}
    return metadata.get("event_type") == EVENT_TYPE and (metadata.get("event_payload") or {}).get("key") == key


def _is_direct(to: Route) -> bool:
    return to.chat_id.startswith("D")
