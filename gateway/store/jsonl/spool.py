"""Files that came inside of lines, put aside on the disk until they are copied in, so that they are never in memory."""

from __future__ import annotations

import binascii
import hashlib
import shutil
import tempfile
import weakref
from pathlib import Path

from gateway.domain.errors import Unavailable
from gateway.ports.moving import LocalFile

CHUNK = 1 << 20
"""How many characters of Base64 are decoded at once; a multiple of four."""


class Spool:
    """A temporary directory, made with the first file. It is gone once it is removed, or nobody holds it any more."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._count = 0

    def keep(self, encoded: bytes | memoryview, sha256: str) -> LocalFile:
        """Put the bytes that are encoded in Base64 aside; raise `ValueError` if it is none, or of another hash."""
        try:
            path = self._new()
            found = hashlib.sha256()
            with path.open("wb") as file:
                for start in range(0, len(encoded), CHUNK):
                    data = binascii.a2b_base64(encoded[start : start + CHUNK], strict_mode=True)
                    found.update(data)
                    file.write(data)
        except OSError as error:
            where = tempfile.gettempdir()
            raise Unavailable(f"cannot put a file aside in {where} (TMPDIR): {error.strerror}") from error
        if found.hexdigest() != sha256:
            path.unlink()
            raise ValueError("the bytes are not those of the hash")
        return LocalFile(path=path)

    def remove(self) -> None:
        """Remove the directory with all that is in it."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _new(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="trunkline-import-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._count += 1
        return self._folder / str(self._count)
