"""Bringing a database to the schema this release knows, by numbered files that run once each, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from gateway.domain.errors import Refused

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step."""

    number: int
    sql: str


def migrations(package: str) -> Sequence[Migration]:
    """Return the migrations shipped in a package, in order."""
    files = (entry for entry in resources.files(package).iterdir() if _NAME.fullmatch(entry.name))
    return [Migration(int(file.name[:4]), file.read_text()) for file in sorted(files, key=lambda file: file.name)]


def pending(steps: Sequence[Migration], version: int, where: str) -> Sequence[Migration]:
    """Return the steps a database at `version` lacks; raise `Refused` if it is newer than this release."""
    newest = steps[-1].number
    if version > newest:
        raise Refused(
            f"{where} was written by a newer Trunkline: its schema is {version}, this release knows up to {newest}. "
            "Install the newer release, or choose another data directory with --data."
        )
    return [step for step in steps if step.number > version]
