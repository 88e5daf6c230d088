"""The files behind nanobot's rows: local paths, and pictures that stand in a row as data."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.domain.message import MediaRef
from gateway.ports.moving import LocalFile

LARGEST_BYTES = 50 * 1024 * 1024

_DATA_URL = re.compile(r"data:(?P<mime>[^;,]*)(?:;[^;,]*)*?;base64,(?P<data>.*)", re.DOTALL | re.IGNORECASE)
_FAMILIES = ("image", "audio", "video")


@dataclass(slots=True)
class MediaFiles:
    """Collects the files that the rows of one session name, each under a reference of its own."""

    workspace: Path
    files: dict[str, LocalFile] = field(default_factory=dict)

    def local(self, path: str) -> MediaRef:
        """Return the reference of a file by its path; it is empty where there is no such file that can be kept."""
        name = re.split(r"[\\/]", path.rstrip("\\/"))[-1]
        mime = mimetypes.guess_type(name)[0] or ""
        place = self.workspace / path
        size = _size(place)
        ref = "" if size is None else self._keep(LocalFile(path=place))
        return MediaRef(ref=ref, kind=_kind(mime), name=name, mime=mime, size_bytes=size)

    def inline(self, block: Mapping[str, Any]) -> MediaRef | None:
        """Return the reference of a picture that stands in a content block as data, or None for any other block."""
        found = _DATA_URL.fullmatch(_url(block)) if block.get("type") == "image_url" else None
        data = _decoded(found["data"]) if found else None
        if found is None or data is None or len(data) > LARGEST_BYTES:
            return None
        mime = found["mime"].lower() or "image/png"
        name = f"image{mimetypes.guess_extension(mime) or ''}"
        ref = self._keep(LocalFile(data=data))
        return MediaRef(ref=ref, kind=_kind(mime), name=name, mime=mime, size_bytes=len(data))

    def _keep(self, file: LocalFile) -> str:
        ref = f"file:{len(self.files)}"
        self.files[ref] = file
        return ref


def split_media(blocks: Sequence[Any], media: MediaFiles) -> tuple[list[Mapping[str, Any]], list[MediaRef]]:
    """Return the blocks that stay, and references of the pictures that stood among them as data."""
    kept: list[Mapping[str, Any]] = []
    taken: list[MediaRef] = []
    for block in blocks:
        if not isinstance(block, Mapping):
            kept.append({"type": "text", "text": str(block)})
        elif (ref := media.inline(block)) is not None:
            taken.append(ref)
        else:
            kept.append(block)
    return kept, taken


def _size(path: Path) -> int | None:
    """Return the size of a regular file that can be read and is not too large, else None."""
    try:
        info = path.stat()
        can_read = os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)
    except (OSError, ValueError):
        return None
    return info.st_size if can_read and stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST_BYTES else None


def _kind(mime: str) -> str:
    family = mime.partition("/")[0]
    return family if family in _FAMILIES else "document"


def _url(block: Mapping[str, Any]) -> str:
    place = block.get("image_url")
    url = place.get("url") if isinstance(place, Mapping) else place
    return url if isinstance(url, str) else ""


def _decoded(data: str) -> bytes | None:
    try:
        return base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
