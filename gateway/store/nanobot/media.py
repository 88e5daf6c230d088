"""The files behind nanobot's rows: local paths, and pictures that stand in a row as data."""

from __future__ import annotations

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
from gateway.store.importers.lines import Repairs
from gateway.store.importers.media import data_url, decoded, kind_of


@dataclass(slots=True)
class MediaFiles:
    """Collects the files that the rows of one session name, each under a reference of its own.

    `missing` tells, by their names, of those that are not there or may not be read.
    """

    workspace: Path
    files: dict[str, LocalFile] = field(default_factory=dict)
    refs: dict[Path, str] = field(default_factory=dict)
    missing: Repairs = field(default_factory=Repairs)

    def local(self, path: str) -> MediaRef:
        """Return the reference of a file by its path; it is empty where there is no such file that can be read."""
        name = re.split(r"[\\/]", path.rstrip("\\/"))[-1]
        mime = mimetypes.guess_type(name)[0] or ""
        place = self.workspace / path
        size = _size(place)
        if size is None:
            self.missing.say(f"the file {name or 'without a name'} is not there or cannot be read; its name is kept")
        ref = "" if size is None else self._keep(LocalFile(path=place))
        return MediaRef(ref=ref, kind=kind_of(mime), name=name, mime=mime, size_bytes=size)

    def inline(self, block: Mapping[str, Any]) -> MediaRef | None:
        """Return the reference of a picture that stands in a content block as data, or None for any other block."""
        url = data_url(block)
        mime, data = ("", b"") if url is None else decoded(url)
        if not data:
            return None
        mime = mime or "image/png"
        name = f"image{mimetypes.guess_extension(mime) or ''}"
        ref = self._keep(LocalFile(data=data))
        return MediaRef(ref=ref, kind=kind_of(mime), name=name, mime=mime, size_bytes=len(data))

    def _keep(self, file: LocalFile) -> str:
        """Return the reference of a file: the same one, however many rows name its path."""
        known = None if file.path is None else self.refs.get(file.path)
        if known is not None:
            return known
        ref = f"file:{len(self.files)}"
        self.files[ref] = file
        if file.path is not None:
            self.refs[file.path] = ref
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
    """Return the size of a regular file that can be read, else None."""
    try:
        info = path.stat()
        can_read = os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)
    except (OSError, ValueError):
        return None
    return info.st_size if can_read and stat.S_ISREG(info.st_mode) else None
