"""The store's file: is it there, is it ours, is it of this release, and is it whole?

Found out before the store is opened as commands open it: that would bring a file of an older release up to date, and
leave its mark in another program's.
"""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path

from gateway.app.core import GATEWAY, lock_path
from gateway.app.doctor.findings import Finding, ok, warn, wrong
from gateway.config.settings import Settings
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.text import size
from gateway.store.migrations import migrations, pending
from gateway.store.opening import sqlite_path
from gateway.store.sqlite.migrate import APPLICATION_ID, read_header
from gateway.store.sqlite.salvage import is_damaged

CHECK = "store"
RIGHT_USER = "Run the doctor as the user that the gateway runs as. If it was, look whether the disk is full or fails."
ANOTHER_FILE = "Name another file in `store.url`, or move this one away."


def check_file(settings: Settings) -> tuple[bool, Finding]:
    """Return whether the store can be read, and what is found of its file."""
    path = sqlite_path(settings.store.url)
    try:
        # An empty file is what a store that was never opened looks like.
        if not path.exists() or (path.is_file() and path.stat().st_size == 0):
            return False, ok(CHECK, f"{path}: not there yet; `trunkline run` makes it")
        problem = _not_ours(path) or _damage(path, lock_path(settings, GATEWAY))
        bytes_taken = sum(one.stat().st_size for one in (path, path.with_name(f"{path.name}-wal")) if one.exists())
    except (OSError, sqlite3.Error) as error:
        return False, wrong(CHECK, f"{path}: cannot be opened: {error}", RIGHT_USER)
    return problem is None, problem or ok(CHECK, f"{path}: {size(bytes_taken)}, intact")


def _not_ours(path: Path) -> Finding | None:
    """Return why the file is not to be opened, or None."""
    try:
        mark, version = read_header(path)
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_NOTADB:
            raise
        mark, version = 0, 0
    if mark != APPLICATION_ID:
        return wrong(CHECK, f"{path}: is no database of Trunkline", ANOTHER_FILE)
    try:
        is_older = bool(pending(migrations("gateway.store.sqlite.migrations"), version, str(path)))
    except Refused as error:
        return wrong(CHECK, f"{path}: of a newer release", str(error))
    todo = "`trunkline run` brings it up to date; what it holds can be looked at after that."
    return warn(CHECK, f"{path}: of an older release", todo) if is_older else None


def _damage(path: Path, lock: Path) -> Finding | None:
    try:
        if not is_damaged(path):
            return None
    except Unavailable as error:
        return wrong(CHECK, str(error), "Try again in a while; a full disk or another program may hold it up.")
    # A gateway looks for damage when the one before it was killed, which it tells by what is left in the lock file.
    todo = (
        f"Stop the gateway if it runs, and copy {path} and what is beside it. Then"
        f" `echo mend > {shlex.quote(str(lock))}` and start it: it makes a new file of all that can be read, and keeps"
        " the damaged one beside it."
    )
    return wrong(CHECK, f"{path}: damaged", todo)
