"""Importing and exporting, beside a running gateway or without one."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import os
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from gateway.app.data import use_data_directory
from gateway.app.sessions import check_is_there, every_session, find_session, session_manager
from gateway.config.settings import Settings
from gateway.domain.errors import NotFound, Refused, TrunklineError, Unavailable
from gateway.domain.message import KEPT, MediaRef
from gateway.media.files import FileMedia
from gateway.ports.media import Media, StoredMedia
from gateway.ports.moving import Source
from gateway.ports.sessions import SessionCopy, Sessions
from gateway.sessions.moving import Importer, Taken
from gateway.store.jsonl import writer as jsonl
from gateway.store.jsonl.writer import closing
from gateway.store.markdown import writer as markdown
from gateway.store.nanobot.writer import NanobotFile, file_name, nanobot_file
from gateway.store.opening import open_store, sqlite_path
from gateway.tokens.o200k import O200kCounter
from gateway.wakeups.clock import SystemClock

__all__ = ["Exported", "closing", "exported", "import_all", "open_moving", "zone_named"]

_LOCAL_TIME = Path("/etc/localtime")


def zone_named(name: str | None) -> tzinfo:
    """Return a time zone by its IANA name, or this machine's; raise `Refused` for a name that is none."""
    try:
        if name or (name := os.environ.get("TZ", "").lstrip(":")):
            return ZoneInfo(name)
        with _LOCAL_TIME.open("rb") as file:
            return ZoneInfo.from_file(file, key="localtime")
    except (ZoneInfoNotFoundError, ValueError):
        raise Refused(f"--timezone: expected a name such as Europe/Berlin, got {name!r}") from None
    except OSError:
        return UTC


async def import_all(
    settings: Settings, source: Source, *, dry_run: bool, told: Callable[[Taken], None]
) -> Sequence[Taken]:
    """Take in all sessions of a source; with `dry_run` only tell what would become of them."""
    async with _open_for_import(settings, dry_run) as (sessions, media):
        importer = Importer(sessions, media, most_bytes=settings.media.max_file_bytes, dry_run=dry_run)
        return await importer.take_in(source, told)


@asynccontextmanager
async def _open_for_import(settings: Settings, dry_run: bool) -> AsyncIterator[tuple[Sessions, Media]]:
    path = sqlite_path(settings.store.url)
    if dry_run and not path.exists():
        # To try on a machine that has no store yet must leave none.
        with TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/empty.db"
            async with open_moving(replace(settings, store=settings.store.model_copy(update={"url": url}))) as opened:
                yield opened
        return
    use_data_directory(settings.data)
    async with open_moving(settings) as opened:
        yield opened


@asynccontextmanager
async def open_moving(settings: Settings) -> AsyncIterator[tuple[Sessions, Media]]:
    """Open the sessions and the files of a store, which is made if there is none."""
    url = settings.store.url
    async with open_store(url, clock=SystemClock(), make_id=lambda: uuid.uuid4().hex, count=O200kCounter()) as store:
        yield store.sessions, FileMedia(settings.media.folder(sqlite_path(url)), store.media)


@dataclass(frozen=True, slots=True)
class Exported:
    """One session on its way out, in whichever format is wanted.

    `missing` says which files could not be had and why, once it is written.
    """

    copy: SessionCopy
    media: Media
    missing: list[str] = field(default_factory=list)

    async def jsonl(self, *, files: bool) -> AsyncGenerator[str, None]:
        """Yield its text in our own format in pieces, with the bytes of its files if they are wanted."""
        async with AsyncExitStack() as stack:
            wanted = (
                await stack.enter_async_context(aclosing(_files(self.copy, self.media, self.missing)))
                if files
                else None
            )
            pieces = await stack.enter_async_context(aclosing(jsonl.pieces(self.copy, wanted)))
            async for piece in pieces:
                yield piece

    def markdown(self, *, hidden: bool) -> Iterator[str]:
        """Return its lines for people, with hidden rows if they are wanted."""
        return markdown.lines(self.copy, everything=hidden)

    def nanobot_name(self, channels: Mapping[str, str]) -> str:
        """Return the name of its file in nanobot's format."""
        return file_name(self.copy.session, channels)

    async def nanobot(self, folder: Path | None, *, zone: tzinfo, channels: Mapping[str, str]) -> NanobotFile:
        """Return it in nanobot's format, its files written to `folder`; without one they are left out."""
        paths = {} if folder is None else await _laid_down(folder, self.copy, self.media, self.missing)
        return nanobot_file(self.copy, zone=zone, path_of=lambda one: paths.get(one.ref), channels=channels)


async def exported(settings: Settings, ref: str | None) -> AsyncGenerator[Exported, None]:
    """Yield the session that `ref` names, or all there are, one at a time."""
    check_is_there(sqlite_path(settings.store.url))
    async with open_moving(settings) as (sessions, media):
        manager = session_manager(sessions)
        if ref is not None:
            yield Exported(await sessions.copy((await find_session(manager, ref)).id), media)
            return
        async for session in every_session(manager):
            try:
                copied = await sessions.copy(session.id)
            except NotFound:
                # Deleted since the list was made.
                continue
            yield Exported(copied, media)


async def _laid_down(folder: Path, copy: SessionCopy, media: Media, missing: list[str]) -> Mapping[str, str]:
    """Write the files of a session to a directory and return where each lies, by its reference."""
    paths: dict[str, str] = {}
    try:
        async with aclosing(_files(copy, media, missing)) as files:
            async for stored, chunks in files:
                path = folder / f"{stored.ref}{mimetypes.guess_extension(stored.meta.mime) or ''}"
                if await asyncio.to_thread(os.path.lexists, path):
                    if not await asyncio.to_thread(_is_same, path, stored.sha256):
                        missing.append(f"{stored.meta.name or stored.meta.kind}: another file is at {path} already")
                        continue
                elif not await _lay_down(path, chunks, missing):
                    continue
                paths[stored.ref] = str(path.resolve())
    except TrunklineError:
        raise
    except OSError as error:
        raise Unavailable(f"cannot write to {folder}: {error.strerror}") from error
    return paths


async def _lay_down(path: Path, chunks: AsyncIterator[bytes], missing: Sequence[str]) -> bool:
    """Write a file, which appears once it is whole; return whether it is."""
    before = len(missing)
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with await asyncio.to_thread(draft.open, "xb") as file:
            async for chunk in chunks:
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(file.flush)
        if len(missing) > before:
            return False
        await asyncio.to_thread(draft.replace, path)
    finally:
        await asyncio.to_thread(draft.unlink, missing_ok=True)
    return True


def _is_same(path: Path, sha256: str) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


async def _files(
    copy: SessionCopy, media: Media, missing: list[str]
) -> AsyncGenerator[tuple[StoredMedia, AsyncIterator[bytes]], None]:
    """Yield each file of a session with its bytes, one at a time, in chunks; note in `missing` what cannot be had.

    A file that breaks off ends early and is noted then.
    """
    rows = [*copy.rows, *(retired.row for retired in copy.attic)]
    for ref, named in {one.ref: one for row in rows for one in row.media if one.ref}.items():
        async with AsyncExitStack() as stack:
            chunks = media.open(ref)
            if isinstance(chunks, AsyncGenerator):
                await stack.enter_async_context(aclosing(chunks))
            try:
                stored, first = await media.stat(ref), await anext(chunks, b"")
            except (NotFound, Unavailable) as error:
                # A reference of the channel's own, whose bytes were never fetched, is no loss: the row still names it.
                if ref.startswith(KEPT):
                    missing.append(f"{named.name or named.kind}: {error}")
                continue
            yield stored, await stack.enter_async_context(aclosing(_joined(first, chunks, named, missing)))


async def _joined(
    first: bytes, rest: AsyncIterator[bytes], named: MediaRef, missing: list[str]
) -> AsyncGenerator[bytes, None]:
    yield first
    try:
        async for chunk in rest:
            yield chunk
    except (NotFound, Unavailable) as error:
        missing.append(f"{named.name or named.kind}: {error}")
