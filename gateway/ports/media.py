"""The contract of a media store: bytes that came with messages, kept once and named by an opaque reference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaMeta:
    """What is known of a file before its bytes are read. `name` is what people called it; it never becomes a path."""

    session_id: str
    kind: str
    name: str = ""
    mime: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMedia:
    """A kept file."""

    ref: str
    meta: MediaMeta
    size_bytes: int
    sha256: str


class Media(ABC):
    """Keeps files. Safe to share between tasks and processes."""

    @abstractmethod
    async def put(self, stream: AsyncIterator[bytes], meta: MediaMeta) -> StoredMedia:
        """Keep the bytes, whole or not at all; the same bytes in one session get the same reference."""

    @abstractmethod
    def open(self, ref: str) -> AsyncIterator[bytes]:
        """Yield the bytes; raise `NotFound` if they are not kept."""

    @abstractmethod
    async def stat(self, ref: str) -> StoredMedia:
        """Return what is known of the file; raise `NotFound` if it is not kept."""

    @abstractmethod
    async def delete(self, ref: str) -> bool:
        """Forget the file; return whether it was kept."""

    @abstractmethod
    async def usage(self, scope: str | None = None) -> int:
        """Return the bytes kept for one session, or for all."""
