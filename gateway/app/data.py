"""The data directory."""

from __future__ import annotations

import os
from pathlib import Path

from gateway.domain.errors import Unavailable


def use_data_directory(path: Path) -> None:
    """Make the directory, for its owner only, if it is not there; raise `Unavailable` if nothing can be kept in it."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except FileExistsError as error:
        raise Unavailable(f"expected a directory to keep data in, got a file: {path}") from error
    except OSError as error:
        raise Unavailable(f"cannot make the data directory {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise Unavailable(f"cannot write to the data directory {path}; choose another one with --data")
