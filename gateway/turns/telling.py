"""Telling what happens to a message and its turn: to the log, and to whoever observes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from loguru import logger

from gateway.domain.inbound import Inbound
from gateway.domain.origins import origin_label
from gateway.domain.turn import Turn
from gateway.ports.observer import Event, Observer


class Step(StrEnum):
    """What can happen to a message and its turn."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    OVERFULL = "overfull"
    COMMAND = "command"
    NOT_ADMITTED = "not admitted"
    IGNORED = "ignored"
    STARTED = "started"
    JOINED = "joined"
    ROUND = "round"
    COMPACTING = "compacting"
    COMPACTED = "compacted"
    COMPACTION_SKIPPED = "compaction skipped"
    COMPACTION_FAILED = "compaction failed"
    WAITING = "waiting"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    SET_ASIDE = "set aside"


class Teller:
    """Says each thing once, with everything that names the place it happened in."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def of_message(self, kind: Step, inbound: Inbound, *, level: str = "INFO", **details: Any) -> None:
        """Tell what became of a message that came in."""
        route = inbound.route
        event = Event(
            kind=kind,
            session_key=str(inbound.key),
            channel=route.channel,
            chat_id=route.chat_id,
            message_id=inbound.dedupe_key,
            origin_label=origin_label(inbound.origin) if inbound.origin else "",
            details=details,
        )
        self._tell(f"message {kind}", level, event)

    def of_turn(self, kind: Step, turn: Turn, *, level: str = "INFO", cause: str = "", **details: Any) -> None:
        """Tell what a turn does; `cause` is for the log alone, which redacts it."""
        route = turn.route
        event = Event(
            kind=kind,
            session_key=str(turn.key),
            channel=route.channel,
            chat_id=route.chat_id,
            message_id=turn.message_id,
            turn_id=turn.id,
            origin_label=turn.session.origin_label,
            details=details,
        )
        self._tell(f"turn {kind}", level, event, cause)

    def _tell(self, what: str, level: str, event: Event, cause: str = "") -> None:
        about = {
            "session": event.session_key,
            "channel": event.channel,
            "chat": event.chat_id,
            "message": event.message_id,
            "turn": event.turn_id,
            "origin": event.origin_label,
            "error": cause,
        }
        bound = {name: value for name, value in about.items() if value}
        logger.opt(depth=2).bind(**bound, **event.details).log(level, what)
        self._observer.emit(event)
