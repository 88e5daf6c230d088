"""The settings of kept files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_MEGABYTE = 1 << 20


class MediaOptions(BaseModel):
    """`[media]`: where files that come with messages are kept."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    directory: str = ""
    """Where the files are kept; by default in `media` beside the database. Only one database may use it: what that one
    does not know is removed."""
    max_file_mb: Annotated[int, Field(ge=1, le=10_000)] = 50
    """How large a file may be, in megabytes."""

    @property
    def max_file_bytes(self) -> int:
        """How large a file may be."""
        return self.max_file_mb * _MEGABYTE

    def folder(self, database: Path) -> Path:
        """Return the directory, given the database's file."""
        return Path(self.directory).expanduser() if self.directory else database.parent / "media"
