"""The contract of a media store: bytes that came with messages, kept once and named by an opaque reference."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gateway.domain.message import KEPT, MediaRef


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaMeta:
    """What is known of a file before its bytes are read. `name` is what people called it; it never becomes a path."""

    session_id: str
    kind: str
    name: str = ""
    mime: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMedia:
    """A kept file; `sha256` is in lower-case hex."""

    ref: str
    meta: MediaMeta
    size_bytes: int
    sha256: str
    width: int | None = None
    height: int | None = None
    """In pixels, for a picture whose size could be read."""


def media_ref(session_id: str, sha256: str) -> str:
    """Return the reference of these bytes in this session: the same one whenever they are kept again."""
    return KEPT + hashlib.sha256(f"{session_id}\n{sha256}".encode()).hexdigest()[:16]


def kept_as(media: MediaRef, stored: StoredMedia) -> MediaRef:
    """Return what a row says of a file once it is kept."""
    size = stored.size_bytes
    return replace(media, ref=stored.ref, size_bytes=size, width=stored.width, height=stored.height)


class Media(ABC):
    """Keeps files. Safe to share between tasks and processes.

    Whoever knows a reference may read it; whose session it is of is in `stat`, for the caller to compare. Where files
    cannot be kept or read at the moment, as on a full disk, every method raises `Unavailable`.
    """

    @abstractmethod
    async def put(self, stream: AsyncIterator[bytes], meta: MediaMeta, *, max_bytes: int | None = None) -> StoredMedia:
        """Keep the bytes, whole or not at all; the same bytes in one session get the same reference.

        The session need not be there yet. Raises `NotFound` if it was deleted, and `Refused` once more than `max_bytes`
        have come. What the stream raises is raised as it is; if it is a generator, it is closed in any case.
        """

    @abstractmethod
    def open(self, ref: str) -> AsyncIterator[bytes]:
        """Yield the bytes; raise `NotFound` if they are not kept, or no longer whole."""

    @abstractmethod
    async def stat(self, ref: str) -> StoredMedia:
        """Return what is known of the file; raise `NotFound` if it is not kept."""

    @abstractmethod
    async def delete(self, ref: str) -> bool:
        """Forget the file; return whether it was kept. The same bytes stay for the other sessions that have them."""

    @abstractmethod
    async def usage(self, scope: str | None = None) -> int:
        """Return the bytes kept for one session, or for all; what sessions share is counted once."""

    @abstractmethod
    async def sweep(self, older_than: timedelta, now: datetime) -> int:
        """Remove the bytes that kills and deleted sessions left behind, if they are older than that; return how many.

        `older_than` must be more than a stream may pause.
        """


class MediaIndex(ABC):
    """Knows of the files that are kept, and not where their bytes are. Safe to share between tasks and processes."""

    @abstractmethod
    async def add(self, stored: StoredMedia) -> StoredMedia:
        """Note a file; return it, or what was noted first for the same bytes in the same session.

        The session need not be there yet. Raises `NotFound` if it was deleted, and `Refused` if the reference is that
        of other bytes.
        """

    @abstractmethod
    async def get(self, ref: str) -> StoredMedia:
        """Return what is known of the file; raise `NotFound` if nothing is."""

    @abstractmethod
    async def find(self, session_id: str) -> Sequence[StoredMedia]:
        """Return the files of a session, in the order they came."""

    @abstractmethod
    async def delete(self, ref: str) -> bool:
        """Forget the file; return whether it was known."""

    @abstractmethod
    async def used(self, sha256s: Collection[str]) -> set[str]:
        """Return those of the hashes that a file of any session has."""

    @abstractmethod
    async def usage(self, session_id: str | None = None) -> int:
        """Return the bytes of one session, or of all; what sessions share is counted once."""
