"""nanobot's session keys and ours: `slack:C1:1700.1` there, a channel, a chat and perhaps a thread here.

nanobot joins the parts of a key with colons and escapes nothing. A colon inside a chat id of ours is written `%3A`
there and read back from it, so that a chat named `a:b` does not become the thread `b` of a chat `a`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from gateway.domain.keys import SessionKey
from gateway.domain.origins import Origin

BARE = "nanobot"
"""The channel of a session whose key names none, such as `heartbeat`."""

_TERMINAL = ("cli", "direct")
_CONSOLE = ("console", "local")
_NOT_NAMED_SO = re.compile(r"[^a-z0-9_-]+")
_TOPIC = re.compile(r"topic:([^:]+)")
_PLACELESS = frozenset({BARE, "unified"})
TERMINAL_LABEL = "terminal"
"""What the terminal's channel calls the place of its sessions."""


def session_key(key: str, channels: Mapping[str, str] = {}) -> SessionKey:
    """Return our key for one of nanobot's; raise `InvalidKey` where none can be made.

    `channels` renames channels: from nanobot's name, which is the kind of platform, to ours.
    """
    channel, chat_id, thread = _parts(key)
    name = channels.get(channel) or channels.get(_ours(channel)) or _ours(channel)
    if (channel, chat_id, thread) == (*_TERMINAL, None):
        chat_id = _CONSOLE[1]
    return SessionKey(name, chat_id, thread)


def nanobot_key(key: SessionKey, channels: Mapping[str, str] = {}) -> str:
    """Return nanobot's key for one of ours; `channels` renames channels, from our name to nanobot's.

    Reading it again gives the same key, but for a chat id that holds `%3A` itself.
    """
    channel = channels.get(key.channel) or (_TERMINAL[0] if key.channel == _CONSOLE[0] else key.channel)
    if (channel, key.chat_id, key.thread) == (_TERMINAL[0], _CONSOLE[1], None):
        return ":".join(_TERMINAL)
    chat_id = key.chat_id.replace(":", "%3A")
    if key.thread is None:
        return chat_id if channel == BARE else f"{channel}:{chat_id}"
    topic = "topic:" if channel == "telegram" and ":" not in key.thread else ""
    return f"{channel}:{chat_id}:{topic}{key.thread}"


def key_origin(key: str) -> Origin | None:
    """Return the place a key of nanobot's names, or None for a session that belongs to no chat."""
    channel, chat_id, thread = _parts(key)
    if channel == _TERMINAL[0]:
        chat_id = _CONSOLE[1] if (channel, chat_id, thread) == (*_TERMINAL, None) else chat_id
        return Origin(kind=_CONSOLE[0], label=TERMINAL_LABEL, chat_id=chat_id, actor=chat_id)
    if channel in _PLACELESS or not chat_id:
        return None
    return Origin(kind=channel, chat_id=chat_id, thread=thread)


def _parts(key: str) -> tuple[str, str, str | None]:
    if ":" not in key:
        return BARE, _chat_id(key), None
    first, chat_id, *rest = key.split(":", 2)
    channel = _NOT_NAMED_SO.sub("-", first.lower()).strip("-") or BARE
    thread = rest[0] if rest else None
    if channel == "telegram" and thread and (topic := _TOPIC.fullmatch(thread)):
        thread = topic[1]
    return channel, _chat_id(chat_id), thread


def _chat_id(part: str) -> str:
    return part.replace("%3A", ":")


def _ours(channel: str) -> str:
    return _CONSOLE[0] if channel == _TERMINAL[0] else channel
