"""Media as files: bytes go to a draft, the draft becomes a file named by their hash, and then a row is noted.

A kill between any two of these steps leaves a draft or a file without a row, which a sweep removes; a row without its
bytes is never left. Sessions share the file of the same bytes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import ExitStack, aclosing
from datetime import datetime, timedelta
from pathlib import Path

from loguru import logger

from gateway.domain.errors import NotFound, Refused, TrunklineError
from gateway.media.blocking import blocking, finished
from gateway.media.folder import Draft, Folder
from gateway.media.guard import Guard
from gateway.ports.media import Media, MediaIndex, MediaMeta, StoredMedia, media_ref

CHUNK = 1 << 18
"""How many bytes are written or read at once; what comes in smaller pieces is gathered."""


class FileMedia(Media):
    """Keeps files in a directory, which is made with the first of them, and what is known of them in an index."""

    def __init__(self, directory: Path, index: MediaIndex) -> None:
        """Use `directory`, which no other index may use."""
        self._folder = Folder(directory)
        self._guard = Guard(directory)
        self._index = index

    async def put(self, stream: AsyncIterator[bytes], meta: MediaMeta, *, max_bytes: int | None = None) -> StoredMedia:
        draft = Draft(self._folder)
        try:
            await _fill(draft, stream, max_bytes)
            return await finished(self._keep(draft, meta))
        finally:
            await blocking(draft.discard)

    async def open(self, ref: str) -> AsyncIterator[bytes]:
        stored = await self._index.get(ref)
        with ExitStack() as opened:
            # Entered in the thread, so that a cancellation in this moment leaves no open file either.
            file = await blocking(lambda: opened.enter_context(self._folder.open(stored.sha256, stored.size_bytes)))
            while chunk := await blocking(file.read, CHUNK):
                yield chunk

    async def stat(self, ref: str) -> StoredMedia:
        return await self._index.get(ref)

    async def delete(self, ref: str) -> bool:
        try:
            stored = await self._index.get(ref)
        except NotFound:
            return False
        return await finished(self._delete(stored))

    async def usage(self, scope: str | None = None) -> int:
        return await self._index.usage(scope)

    async def sweep(self, older_than: timedelta, now: datetime) -> int:
        """Remove what kills and deleted sessions left behind, if it is older than that; return how many files it was.

        `older_than` must be more than a stream may pause: a draft that nobody wrote to for so long is taken for dead.
        """
        before = (now - older_than).timestamp()
        removed = await blocking(self._folder.remove_drafts, before)
        for shard in await blocking(self._folder.shards):
            old = set(await blocking(self._folder.hashes, shard, before))
            if unused := old - await self._index.used(old):
                removed += await finished(self._remove_unused(unused))
        return removed

    async def _keep(self, draft: Draft, meta: MediaMeta) -> StoredMedia:
        sha256 = draft.sha256
        ref = media_ref(meta.session_id, sha256)
        try:
            async with self._guard.keeping():
                await blocking(self._folder.take, draft)
                width, height = await blocking(self._folder.picture_size, sha256)
                return await self._index.add(
                    StoredMedia(
                        ref=ref,
                        meta=meta,
                        size_bytes=draft.size_bytes,
                        sha256=sha256,
                        width=width,
                        height=height,
                    )
                )
        except TrunklineError:
            await self._tidy(sha256)
            raise

    async def _delete(self, stored: StoredMedia) -> bool:
        was_kept = await self._index.delete(stored.ref)
        await self._tidy(stored.sha256)
        return was_kept

    async def _tidy(self, sha256: str) -> None:
        """Remove bytes that nothing may use any more, at once if that can be done; else a sweep does it."""
        try:
            await self._remove_unused({sha256})
        except TrunklineError as error:
            logger.bind(error=str(error)).warning("the bytes of a file could not be removed; they are swept later")

    async def _remove_unused(self, sha256s: Collection[str]) -> int:
        async with self._guard.removing() as alone:
            if not alone:
                return 0
            return await blocking(self._folder.remove, set(sha256s) - await self._index.used(sha256s))


async def _fill(draft: Draft, stream: AsyncIterator[bytes], max_bytes: int | None) -> None:
    async with aclosing(_gathered(stream, max_bytes)) as pieces:
        async for piece in pieces:
            await blocking(draft.write, piece)
    await blocking(draft.finish)


async def _gathered(stream: AsyncIterator[bytes], max_bytes: int | None) -> AsyncGenerator[bytes, None]:
    """Yield the stream in pieces worth a call each, at least one, and close it."""
    waiting, size = bytearray(), 0
    try:
        async for chunk in stream:
            size += len(chunk)
            if max_bytes is not None and size > max_bytes:
                raise Refused(f"expected a file of at most {max_bytes} bytes, got {size} or more")
            waiting += chunk
            if len(waiting) >= CHUNK:
                yield bytes(waiting)
                waiting.clear()
        yield bytes(waiting)
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()
