"""What a channel hands in: one event of a platform, reduced to what the gateway decides by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from gateway.domain.commands import command_of
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, MediaRef, Message, Role, Sender
from gateway.domain.origins import Origin


class InboundKind(StrEnum):
    """What happened on the platform."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    COMMAND = "command"
    CHOICE = "choice"
    FILE = "file"
    REACTION = "reaction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One event, with the route its answer takes.

    `dedupe_key` names the event within its channel, so that every repeat of it is the same text:
    `msg:{team}:{channel}:{ts}` for a Slack post however it is announced, `upd:{update}:{chat}:{message}` for Telegram.
    `sent_at` is the platform's time and orders a session's input. `is_direct` is a chat of one person with the bot;
    `addresses_bot` says that the text is meant for the bot (a mention, a reply to it, or any direct message).
    """

    kind: InboundKind
    route: Route
    dedupe_key: str
    sender: Sender
    sent_at: datetime
    text: str = ""
    is_direct: bool = False
    addresses_bot: bool = False
    media: tuple[MediaRef, ...] = ()
    origin: Origin | None = None
    target: str | None = None
    """The platform's id of the message that an edit, delete, reaction or choice is about."""

    @property
    def key(self) -> SessionKey:
        """The session this event belongs to."""
        return self.route.key

    @property
    def event_id(self) -> str:
        """The event's name across all channels."""
        return f"{self.route.channel}/{self.dedupe_key}"


def as_row(inbound: Inbound) -> Message:
    """Return the user row that an admitted message becomes; a command is kept, and is not for the model."""
    return Message(
        role=Role.USER,
        kind=Kind.CHAT if command_of(inbound.text) is None else Kind.COMMAND,
        content=inbound.text,
        sender=replace(inbound.sender, shared=not inbound.is_direct),
        media=inbound.media,
        event_id=inbound.event_id,
        created_at=inbound.sent_at,
    )
