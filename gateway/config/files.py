"""Where the configuration and the data are, and what the file says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from gateway.domain.errors import ConfigError

FILE_NAME = "trunkline.toml"
_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def data_directory(data: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the data directory: `data`, else `TRUNKLINE_DATA`, else the user's own; it may not exist yet."""
    chosen = data or environment.get("TRUNKLINE_DATA") or platformdirs.user_data_path("trunkline", appauthor=False)
    return Path(chosen).expanduser().absolute()


def find_file(path: Path | None, environment: Mapping[str, str], data: Path) -> Path | None:
    """Return the file to read: `path` or `TRUNKLINE_CONFIG` if given, else one here, else one in the data directory."""
    given = path or environment.get("TRUNKLINE_CONFIG")
    if given:
        return Path(given).expanduser()
    return next((file for file in (Path(FILE_NAME), data / FILE_NAME) if file.is_file()), None)


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file says; raise `ConfigError` with the file and line if it cannot be read."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError("", f"{path}: {error.strerror or 'cannot be read'}") from error
    try:
        # Some editors put a byte order mark in front.
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError("", f"{path}: line {line}: expected UTF-8 text") from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError("", _explain(path, str(error), text)) from error


def _explain(path: Path, message: str, text: str) -> str:
    place = _PLACE.search(message)
    line = place[1] if place and place[1] else str(text.count("\n") + 1)
    return f"{path}: line {line}: {_PLACE.sub('', message)}"
