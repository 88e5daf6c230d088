"""The tool by which a model looks again at a file that came earlier."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gateway.domain.errors import NotFound
from gateway.domain.message import MediaRef, ToolCall
from gateway.domain.session import Session
from gateway.domain.text import whole
from gateway.ports.media import Media, StoredMedia, kept_as
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec

OPEN_MEDIA = ToolSpec(
    name="open_media",
    description=(
        "Look again at a file of this conversation. Files are named in lines such as [image: plan.png · ref m_3f2a]; "
        "give the reference. A picture is shown with the next message, a text is returned."
    ),
    schema={
        "type": "object",
        "properties": {"ref": {"type": "string", "description": "The reference, such as m_3f2a."}},
        "required": ["ref"],
    },
    side_effects=False,
)
LONGEST_TEXT = 100_000
"""Bytes of a text file that are returned."""
_TEXTS = ("text/", "application/json", "application/xml", "application/x-yaml", "application/toml")


class WithMedia(Tools):
    """Adds `open_media` to other tools, from the first file of a session on.

    Not before, although that changes the tools once: most chats never have one, and some models take no tools at all.
    """

    def __init__(self, inner: Tools, media: Media) -> None:
        self._inner = inner
        self._media = media

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        """Return the other tools, then `open_media` if there is anything to open."""
        specs = await self._inner.specs(session)
        has_files = [await self._media.usage(id) for id in _ours(session)]
        return [*specs, OPEN_MEDIA] if any(has_files) else specs

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run `open_media`; hand any other call on."""
        if call.name != OPEN_MEDIA.name:
            return await self._inner.call(call, context)
        try:
            stored = await self._media.stat(_ref(call.arguments))
            # A reference of another conversation is as good as none: what others sent is not this one's business.
            return await self._opened(stored) if stored.meta.session_id in _ours(context.session) else _unknown()
        except NotFound:
            return _unknown()

    async def _opened(self, stored: StoredMedia) -> ToolResult:
        meta = stored.meta
        if meta.mime.startswith(_TEXTS):
            return ToolResult(text=await self._text(stored))
        if meta.kind != "image":
            return ToolResult(text=f"A file of type {meta.mime or meta.kind} cannot be read here.", is_error=True)
        again = MediaRef(ref=stored.ref, kind=meta.kind, name=meta.name, mime=meta.mime)
        return ToolResult(text="The picture follows, if it can be shown to you.", media=(kept_as(again, stored),))

    async def _text(self, stored: StoredMedia) -> str:
        data = bytearray()
        async for chunk in self._media.open(stored.ref):
            # All of it is read, so that nothing is left open; what is kept of it is bounded.
            data += chunk[: max(LONGEST_TEXT - len(data), 0)]
        more = f"\n[… {stored.size_bytes - LONGEST_TEXT} more bytes …]" if stored.size_bytes > LONGEST_TEXT else ""
        return data[:LONGEST_TEXT].decode("utf-8", "replace") + more


def _ours(session: Session) -> Sequence[str]:
    """Return the sessions whose files are this one's too: its own, and those it was made from."""
    return [session.id, session.parent_id] if session.parent_id else [session.id]


def _ref(arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    ref = given.get("ref") if isinstance(given, dict) else None
    return whole(ref) if isinstance(ref, str) else ""


def _unknown() -> ToolResult:
    return ToolResult(text="There is no file of that reference in this conversation.", is_error=True)
