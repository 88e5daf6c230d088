"""Where nanobot keeps its sessions, and whose a file is.

Three ages of it are known. The oldest kept all sessions in `~/.nanobot/sessions`, a file named by the key with its
colons and other odd characters replaced (`lossy`). Then each workspace got its own `sessions`, first with such names,
later with the key in Base64 (`canonical`). The latest keeps them in `~/.nanobot/sessions/<workspace id>`, where the
file `.workspace` names the workspace.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from gateway.domain.errors import Refused
from gateway.domain.text import whole
from gateway.store.nanobot.names import SUFFIX, storage_name

DATABASE = "sessions.sqlite3"

_HOME = ".nanobot"
_MARKER = ".workspace"
_WORKSPACE_ID = re.compile(r"[0-9a-f]{32}")
_UNSAFE = re.compile(r'[<>:"/\\|?*]')
_TEMPORARY = re.compile(r"\.?(?P<stem>.+)\.jsonl(\..*)?\.tmp")
_GUESSES = (
    (re.compile(r"telegram_(-?\d+)_topic_(\d+)"), r"telegram:\1:topic:\2"),
    (re.compile(r"slack_([A-Z0-9]+)_(\d+\.\d+)"), r"slack:\1:\2"),
    (re.compile(r"([^_]+)_(.+)"), r"\1:\2"),
)


class Place(IntEnum):
    """Where a file stands, in the order in which nanobot looks for a session."""

    WORKSPACE_ID = 0
    WORKSPACE = 1
    GLOBAL = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A directory of session files, and the workspace they belong to."""

    path: Path
    workspace: Path
    place: Place

    @property
    def label(self) -> str:
        """What people and ids know the folder by, however its home was reached."""
        return self.path.name if self.place is Place.WORKSPACE_ID else self.place.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file of a folder that holds a session, or might. `is_temporary` is one left by a save that never ended."""

    folder: Folder
    name: str
    stem: str
    is_temporary: bool = False

    @property
    def label(self) -> str:
        """The folder's label and the file's name, by which one file is told from all others."""
        return whole(f"{self.folder.label}/{self.name}")

    @property
    def is_database(self) -> bool:
        """Whether the session is one of a database, into which nanobot moved those of the files beside it."""
        return False

    def read(self) -> tuple[bytes, float]:
        """Return the bytes and when they were changed; raise `OSError` where that cannot be."""
        return read_file(self.folder.path / self.name)


def real_workspace(folder: Folder) -> str:
    """Return by what one workspace is told from another, however it was reached."""
    return os.path.realpath(folder.workspace)


def shown_name(entry: Entry) -> str:
    """Return the name of a file as a report has it, with the key where that is not to be seen in it."""
    key = None if entry.is_database else decoded_name(entry.stem)
    return entry.name if key is None else f"{entry.name} ({key})"


def lossy_name(key: str) -> str:
    """Return the stem that older versions used; several keys may have the same."""
    return _UNSAFE.sub("_", key).strip()


def decoded_name(stem: str) -> str | None:
    """Return the key that a stem spells in Base64, or None if it spells none."""
    try:
        key = base64.b64decode(stem + "=" * (-len(stem) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return key if key and key.isprintable() and storage_name(key) == stem else None


def guessed_key(stem: str) -> str:
    """Return the key that a lossy stem most likely stands for."""
    return next((found.expand(key) for form, key in _GUESSES if (found := form.fullmatch(stem))), stem)


def folders(directory: Path) -> list[Folder]:
    """Return the directories of session files in and about `directory`; raise `Refused` where there are none.

    It may be a home of nanobot, a workspace, or a directory of sessions itself.
    """
    try:
        if not directory.is_dir():
            raise Refused(f"expected a directory of nanobot, got {str(directory)!r}, which is none")
        found = [*_in_home(directory)] or [*_in_workspace(directory)] or [*_of_sessions(directory)]
    except OSError as error:
        raise Refused(f"expected a directory that can be read, got {str(directory)!r}: {error.strerror}") from error
    if not found:
        raise Refused(
            "expected a home or workspace of nanobot, or a directory of its session files (*.jsonl), "
            f"got {str(directory)!r}, which holds none"
        )
    return sorted(found, key=lambda folder: folder.place)


def entries(folder: Folder) -> list[Entry]:
    """Return what might be a session in a folder, in order of names; raise `OSError` if it cannot be listed."""
    found = [_entry(folder, name) for name in sorted(os.listdir(folder.path))]
    return [entry for entry in found if entry is not None]


def read_file(path: Path) -> tuple[bytes, float]:
    """Return the bytes of a regular file and when it was changed; raise `OSError` for anything else."""
    info = path.stat()
    if not stat.S_ISREG(info.st_mode):
        raise IsADirectoryError(0, "it is no file")
    return path.read_bytes(), info.st_mtime


def _entry(folder: Folder, name: str) -> Entry | None:
    if name.endswith(SUFFIX) and name != SUFFIX:
        return Entry(folder=folder, name=name, stem=whole(name.removesuffix(SUFFIX)))
    if left := _TEMPORARY.fullmatch(name):
        return Entry(folder=folder, name=name, stem=whole(left["stem"]), is_temporary=True)
    return None


def _in_home(directory: Path) -> Iterator[Folder]:
    workspace, root = directory / "workspace", directory / "sessions"
    if not ((workspace / "sessions").is_dir() or _id_folders(root) or directory.name == _HOME):
        return
    yield from _in_own_directory(workspace)
    if root.is_dir():
        yield _global(root, workspace)
        yield from _id_folders(root)


def _in_workspace(directory: Path) -> Iterator[Folder]:
    """Yield the folders of a workspace, which may stand beside the directory that other versions use."""
    root = directory.parent / "sessions"
    yield from _in_own_directory(directory)
    yield from (folder for folder in _id_folders(root) if _is_same(folder.workspace, directory))
    is_in_home = directory.name == "workspace" or directory.parent.name == _HOME
    if is_in_home and root.is_dir() and entries(_global(root, directory)):
        yield _global(root, directory)


def _in_own_directory(workspace: Path) -> Iterator[Folder]:
    path = workspace / "sessions"
    if path.is_dir():
        yield Folder(path=path, workspace=workspace, place=Place.WORKSPACE)


def _of_sessions(directory: Path) -> Iterator[Folder]:
    if marked := _marked(directory):
        yield Folder(path=directory, workspace=marked, place=Place.WORKSPACE_ID)
        return
    own = Folder(path=directory, workspace=directory.parent, place=Place.WORKSPACE)
    inner = _id_folders(directory)
    if directory.name == "sessions" or inner or entries(own) or (directory / DATABASE).exists():
        yield own
        yield from inner


def _global(root: Path, workspace: Path) -> Folder:
    return Folder(path=root, workspace=workspace, place=Place.GLOBAL)


def _id_folders(root: Path) -> list[Folder]:
    try:
        names = sorted(name for name in os.listdir(root) if _WORKSPACE_ID.fullmatch(name))
    except OSError:
        return []
    return [
        Folder(path=root / name, workspace=_marked(root / name) or root / name, place=Place.WORKSPACE_ID)
        for name in names
        if (root / name).is_dir()
    ]


def _marked(directory: Path) -> Path | None:
    """Return the workspace that a directory of sessions says it belongs to."""
    try:
        text = (directory / _MARKER).read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return None
    return Path(text) if text and "\0" not in text else None


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False
