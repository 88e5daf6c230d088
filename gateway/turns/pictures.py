"""The files of the current turn: fetched once, kept, and shown to a model that can see.

Bytes go along for the turn they came with only; afterwards the line that stands for a file is all that is sent, and the
model opens it again with a tool if it wants to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from loguru import logger

from gateway.domain.errors import NotFound, TrunklineError, Unavailable
from gateway.domain.message import MediaRef, Message, Role
from gateway.domain.turn import Turn
from gateway.ports.channel import Channel
from gateway.ports.clock import Clock
from gateway.ports.media import Media, MediaMeta, kept_as
from gateway.ports.model import Picture, Tail
from gateway.ports.patience import until_stored
from gateway.ports.sessions import Sessions
from gateway.ports.turns import Turns
from gateway.turns.run import Run

SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""What the pictures that every provider takes begin with; WebP says it further in."""
MOST_PICTURES = 8
LARGEST_PICTURE = 4_500_000
"""Bytes; Anthropic takes 5 MB as base64 writes them in the body, which is a third more than they are."""
MOST_BYTES = 20_000_000
"""Of all pictures of a request together; providers bound it at 32 MB, in base64."""
UNSEEN = "[context: a picture cannot be viewed here]"


class Pictures:
    """Fetches what came with a turn and shows it; holds nothing between turns."""

    def __init__(
        self,
        *,
        sessions: Sessions,
        turns: Turns,
        media: Media,
        channels: Mapping[str, Channel],
        clock: Clock,
        most_bytes: int,
    ) -> None:
        self._sessions = sessions
        self._turns = turns
        self._media = media
        self._channels = channels
        self._clock = clock
        self._most_bytes = most_bytes

    async def fetch(self, run: Run) -> None:
        """Keep the files that came with the turn. One that cannot be had is named as such, and the turn goes on."""
        for row in await self._rows(run.turn):
            if any(media.ref and not media.is_kept for media in row.media):
                await self._keep(run, row)

    async def tail(self, turn: Turn, text: str, *, can_see: bool) -> Tail:
        """Return what is sent after the stored part: a text, and to a model that can see the pictures of this turn."""
        files = [media for row in await self._rows(turn) for media in row.media if media.kind == "image"]
        newest = files[-MOST_PICTURES:] if can_see else []
        shown = _within(MOST_BYTES, [p for media in newest if (p := await self._picture(media)) is not None])
        lines = [text] + [UNSEEN] * (len(shown) < len(files))
        return Tail(text="\n".join(lines), pictures=shown)

    async def _rows(self, turn: Turn) -> Sequence[Message]:
        rows = await self._sessions.page(turn.session_id, after=turn.first_seq - 1, limit=1_000)
        return [row for row in rows if row.media and row.role in (Role.USER, Role.TOOL)]

    async def _picture(self, media: MediaRef) -> Picture | None:
        """Return a picture with its bytes, or None for one that is not kept or that providers do not take."""
        if not media.is_kept or (media.size_bytes or 0) > LARGEST_PICTURE:
            return None
        try:
            data = b"".join([chunk async for chunk in self._media.open(media.ref)])
        except NotFound:
            return None
        mime = picture_type(data)
        return Picture(mime=mime, data=data) if mime and len(data) <= LARGEST_PICTURE else None

    async def _keep(self, run: Run, row: Message) -> None:
        kept = tuple([await run.breaks.within(partial(self._fetched, run.turn, one)) for one in row.media])
        if kept != row.media:
            await until_stored(lambda: self._turns.keep_media(run.turn, run.lease, row.seq, kept), self._clock)

    async def _fetched(self, turn: Turn, media: MediaRef) -> MediaRef:
        channel = self._channels.get(turn.key.channel)
        if channel is None or not media.ref or media.is_kept:
            return media
        meta = MediaMeta(session_id=turn.session_id, kind=media.kind, name=media.name, mime=media.mime)
        try:
            stored = await self._media.put(channel.fetch(media, self._most_bytes), meta, max_bytes=self._most_bytes)
        except Unavailable as error:
            # Where it is stays known; that it is not here now is all that can be said.
            logger.bind(kind=media.kind, error=str(error)).warning("a file could not be fetched now")
            return media
        except TrunklineError as error:
            logger.bind(kind=media.kind, error=str(error)).warning("a file cannot be fetched")
            return replace(media, ref="")
        return kept_as(media, stored)


def _within(most: int, pictures: Sequence[Picture]) -> Sequence[Picture]:
    """Return the newest pictures that together have at most so many bytes."""
    kept: list[Picture] = []
    for picture in reversed(pictures):
        most -= len(picture.data)
        if most < 0:
            break
        kept.append(picture)
    return kept[::-1]


def picture_type(data: bytes) -> str | None:
    """Return the type of a picture that every provider takes, by its first bytes, or None."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for start, mime in SIGNATURES.items() if data.startswith(start)), None)
