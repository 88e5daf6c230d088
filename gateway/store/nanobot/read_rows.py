"""One row of a nanobot file as one of ours.

What a row holds beyond the fields of ours stays in `extra` under nanobot's own name, so nothing is lost: so do a field
of a shape it should not have, and the role that an announcement had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, tzinfo
from typing import Any

from gateway.domain.announce import parse_announcement
from gateway.domain.message import Attachment, Content, Kind, MediaRef, Message, Role, Sender
from gateway.store.importers.calls import read_calls
from gateway.store.importers.notices import unknown_row
from gateway.store.importers.times import moment
from gateway.store.nanobot.context import part_context
from gateway.store.nanobot.media import MediaFiles, split_media
from gateway.store.nanobot.names import (
    ANNOUNCEMENT,
    APP_ENTRY,
    APP_NAME,
    APP_SKILL,
    APPS,
    CLI_APP,
    COMMAND,
    CONTEXT,
    DELIVERY,
    EVENT,
    HIDDEN_HISTORY,
    SUBAGENT_RESULT,
)

Fields = dict[str, Any]

_ROLES = {role.value: role for role in Role}
_TEXTS = ("tool_call_id", "name", "reasoning_content")
_APP_FIELDS = frozenset({APP_NAME, APP_ENTRY, APP_SKILL})


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Turns the rows of one session into ours; `fallback` is the time of a row that has none."""

    zone: tzinfo
    fallback: datetime
    media: MediaFiles

    def message(self, raw: Mapping[str, Any], seq: int) -> Message:
        """Return the row; one that nobody known speaks in becomes a notice that holds it whole."""
        role = _ROLES.get(raw["role"]) if isinstance(raw.get("role"), str) else None
        if role is None:
            return self.notice(raw, seq)
        rest = {name: value for name, value in raw.items() if name != "role"}
        kind = _kind(role, rest)
        created_at = self._created_at(rest)
        content, media, context = self._content(rest)
        fields = {
            "media": (*media, *self._media(rest)),
            "sender": _sender(rest),
            "attachments": _attachments(rest),
            **_calls(rest),
            **_texts(rest),
            **_thinking(rest),
        }
        if kind is Kind.ANNOUNCEMENT:
            role = _as_announcement(role, content, rest)
        return Message(
            role=role, kind=kind, content=content, runtime_context=context, created_at=created_at, seq=seq,
            extra=rest, **fields,
        )  # fmt: skip

    def notice(self, raw: Mapping[str, Any], seq: int) -> Message:
        """Return a row that people may look at and no model is sent."""
        return unknown_row(raw, seq, moment(raw.get("timestamp"), self.zone) or self.fallback)

    def _created_at(self, rest: Fields) -> datetime:
        read = moment(rest.get("timestamp"), self.zone)
        if read is not None or not rest.get("timestamp"):
            rest.pop("timestamp", None)
        return read or self.fallback

    def _content(self, rest: Fields) -> tuple[Content, list[MediaRef], str | None]:
        content, context = rest.pop("content", None), None
        parted = part_context(content, rest.get(CONTEXT))
        if parted is not None:
            content, context = parted.content, parted.context
            rest[CONTEXT] = dict(parted.rest)
        if content is None or isinstance(content, str):
            return content, [], context
        if not isinstance(content, list):
            rest["content"] = content
            return json.dumps(content, ensure_ascii=False), [], context
        blocks, media = split_media(content, self.media)
        return blocks or "", media, context

    def _media(self, rest: Fields) -> list[MediaRef]:
        paths = rest.get("media")
        if not isinstance(paths, list):
            return []
        _leave(rest, "media", [path for path in paths if not (isinstance(path, str) and path)])
        return [self.media.local(path) for path in paths if isinstance(path, str) and path]


def _leave(rest: Fields, name: str, odd: list[Any]) -> None:
    """Leave under a name only what could not be read, and nothing at all where all of it could be."""
    rest.pop(name)
    if odd:
        rest[name] = odd


def _kind(role: Role, rest: Fields) -> Kind:
    if rest.get(EVENT) == SUBAGENT_RESULT:
        return Kind.ANNOUNCEMENT
    for name, kind in ((COMMAND, Kind.COMMAND), (DELIVERY, Kind.DELIVERY)):
        if rest.get(name):
            if rest[name] is True:
                del rest[name]
            return kind
    if role is Role.USER and rest.get(HIDDEN_HISTORY):
        return Kind.ANNOUNCEMENT
    return Kind.NOTICE if role is Role.SYSTEM else Kind.CHAT


def _as_announcement(role: Role, content: Content, rest: Fields) -> Role:
    """Note the fields an announcement's text holds and the role it had; return the one it has here."""
    told = parse_announcement(content) if isinstance(content, str) else None
    if told is not None:
        rest[ANNOUNCEMENT] = asdict(told)
    if role is not Role.USER:
        rest["role"] = role.value
    return Role.USER


def _calls(rest: Fields) -> Fields:
    if rest.get("tool_calls") is None:
        rest.pop("tool_calls", None)
        return {}
    calls, odd = read_calls(rest["tool_calls"])
    _leave(rest, "tool_calls", odd)
    return {"tool_calls": calls}


def _texts(rest: Fields) -> Fields:
    return {name: rest.pop(name) for name in _TEXTS if name in rest and isinstance(rest[name], str | None)}


def _thinking(rest: Fields) -> Fields:
    blocks = rest.get("thinking_blocks")
    if blocks is None:
        rest.pop("thinking_blocks", None)
    if not isinstance(blocks, list):
        return {}
    _leave(rest, "thinking_blocks", [block for block in blocks if not isinstance(block, Mapping)])
    return {"thinking_blocks": tuple(block for block in blocks if isinstance(block, Mapping))}


def _sender(rest: Fields) -> Sender | None:
    id = rest.get("sender_id")
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        return None
    return Sender(id=str(rest.pop("sender_id")))


def _attachments(rest: Fields) -> tuple[Attachment, ...]:
    apps = rest.get(APPS)
    if not isinstance(apps, list):
        return ()
    read = [(app, _attachment(app)) for app in apps]
    _leave(rest, APPS, [app for app, found in read if found is None or app.keys() - _APP_FIELDS])
    return tuple(found for _, found in read if found is not None)


def _attachment(app: Any) -> Attachment | None:
    name = app.get(APP_NAME) if isinstance(app, Mapping) else None
    if not (isinstance(name, str) and name.strip()):
        return None
    entry, skill = app.get(APP_ENTRY), app.get(APP_SKILL)
    details = {"tool": "run_cli_app", APP_ENTRY: entry if isinstance(entry, str) and entry else "unknown"}
    if isinstance(skill, str) and skill:
        details[APP_SKILL] = skill
    return Attachment(kind=CLI_APP, name=name.strip().lower(), details=details)
