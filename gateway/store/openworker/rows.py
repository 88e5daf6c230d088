"""Rows of openworker, shaped like messages of OpenAI's chat API with its own fields beside them, as ours.

What has no place in a row of ours is kept in `extra`, under its name. No JSON makes anything here raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.message import Content, Kind, MediaRef, Message, Role, ToolCall, text_of
from gateway.ports.moving import LocalFile
from gateway.store.importers.calls import read_calls
from gateway.store.importers.media import data_url, decoded
from gateway.store.importers.notices import unknown_row
from gateway.store.openworker.values import moment

Raw = dict[str, Any]

_ROLES = ("system", "user", "assistant", "tool")


@dataclass(slots=True)
class Pictures:
    """Takes the pictures that stand in rows out of them, as files; `seq` is the row it is at."""

    seq: int = 0
    files: dict[str, LocalFile] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)

    def take(self, url: str) -> MediaRef:
        """Return a reference to the picture in a data URL; without a `ref` where it cannot be decoded."""
        mime, data = decoded(url)
        if not data:
            self.repairs.append(f"row {self.seq}: a picture that cannot be decoded, only its place is kept")
            return MediaRef(ref="", kind="image", mime=mime)
        ref = f"file:{len(self.files) + 1}"
        self.files[ref] = LocalFile(data=data)
        return MediaRef(ref=ref, kind="image", mime=mime, size_bytes=len(data))


def read_row(raw: Mapping[str, Any], seq: int, pictures: Pictures) -> Message:
    """Return a row of openworker as ours; `created_at` is None where it has no time."""
    rest = dict(raw)
    role = rest.pop("role", None)
    if role == "notice":
        return _notice(rest, seq)
    if not isinstance(role, str) or role not in _ROLES:
        return unknown_row(raw, seq, moment(raw.get("ts")))
    pictures.seq = seq
    content, media = _take_content(rest, pictures)
    return Message(
        role=Role(role),
        # The system prompt is built anew for each turn; the old one is only shown.
        kind=Kind.NOTICE if role == "system" else Kind.CHAT,
        content=content,
        media=media,
        tool_calls=_take_calls(rest),
        tool_call_id=_take_text(rest, "tool_call_id"),
        name=_take_text(rest, "name"),
        reasoning_content=_take_text(rest, "reasoning_content") or _take_text(rest, "reasoning"),
        seq=seq,
        created_at=_take_time(rest),
        extra=rest,
    )


def _notice(rest: Raw, seq: int) -> Message:
    is_compacted = rest.get("kind") == "compacted"
    if is_compacted:
        del rest["kind"]
    return Message(
        role=Role.SYSTEM,
        kind=Kind.COMPACTED if is_compacted else Kind.NOTICE,
        content=_take_text(rest, "text") or _take_text(rest, "content") or "",
        seq=seq,
        created_at=_take_time(rest),
        extra=rest,
    )


def _take_text(rest: Raw, name: str) -> str | None:
    """Take a text out of what is left of a row; what is no text stays there."""
    value = rest.get(name)
    if value is None or isinstance(value, str):
        rest.pop(name, None)
        return value
    return None


def _take_time(rest: Raw) -> Any:
    found = moment(rest.get("ts"))
    if found is not None:
        del rest["ts"]
    return found


def _take_content(rest: Raw, pictures: Pictures) -> tuple[Content, tuple[MediaRef, ...]]:
    value = rest.pop("content", None)
    if value is None or isinstance(value, str):
        return value, ()
    if not isinstance(value, list | dict):
        rest["content"] = value
        return None, ()
    found = [_block(item) for item in (value if isinstance(value, list) else [value])]
    if any(block is None for block in found):
        rest["content"] = [item for item in value if _block(item) is None]
    return _without_pictures([block for block in found if block is not None], pictures)


def _block(item: Any) -> Raw | None:
    if isinstance(item, str):
        return {"type": "text", "text": item}
    return item if isinstance(item, dict) else None


def _without_pictures(blocks: list[Raw], pictures: Pictures) -> tuple[Content, tuple[MediaRef, ...]]:
    others: list[Raw] = []
    media: list[MediaRef] = []
    for block in blocks:
        if (url := data_url(block)) is None:
            others.append(block)
        else:
            media.append(pictures.take(url))
    is_text = media and all(isinstance(block.get("text"), str) and block.get("type") == "text" for block in others)
    return text_of(others) if is_text else others, tuple(media)


def _take_calls(rest: Raw) -> tuple[ToolCall, ...]:
    """Take the calls with an id and a name out of what is left of a row; the others, and what says more, stay."""
    listed = rest.pop("tool_calls", None)
    if listed is None:
        return ()
    calls, odd = read_calls(listed)
    if odd:
        rest["tool_calls"] = odd
    return calls
