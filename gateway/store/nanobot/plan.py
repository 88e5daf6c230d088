"""Which file of nanobot holds which session, decided before any is read whole.

nanobot goes by names: of several files of one session it reads the first it finds, and never looks at the others. Here
these are read too, each as a closed session of its own. A file that holds nothing hides no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from gateway.domain.errors import InvalidKey
from gateway.domain.keys import SessionKey
from gateway.domain.text import whole
from gateway.ports.moving import imported_id
from gateway.store.importers.lines import read_lines
from gateway.store.nanobot.database import DatabaseEntry
from gateway.store.nanobot.files import (
    Entry,
    Place,
    decoded_name,
    guessed_key,
    lossy_name,
    real_workspace,
)
from gateway.store.nanobot.header import Header, read_header
from gateway.store.nanobot.keys import session_key
from gateway.store.nanobot.names import METADATA, storage_name

_CANONICAL, _LOSSY, _STRAY = range(3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What is to become of a file: the session of `key`, closed or not, with this id; or nothing, for a `problem`."""

    entry: Entry
    key: str = ""
    id: str = ""
    is_closed: bool = False
    notes: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A file, the session it claims to be, and how well its name agrees."""

    entry: Entry
    header: Header
    key: str
    fit: int
    note: str = ""

    @property
    def order(self) -> tuple[bool, Place, bool, int]:
        entry = self.entry
        return entry.is_temporary, entry.folder.place, not entry.is_database, self.fit


def plan(entries: Sequence[Entry], channels: Mapping[str, str], *, zone: tzinfo, now: datetime) -> list[Planned]:
    """Return what is to become of each file, in their order; each is looked into for its key and its times.

    A file that nanobot has moved into a database is left out, and told of where the session is.
    """
    headers = {entry: peek(entry, zone=zone, now=now) for entry in entries}
    by_lossy = {lossy_name(header.key): header.key for header in headers.values() if header and header.key}
    claims = [_claim(entry, header, by_lossy) for entry, header in headers.items() if header]
    planned = {entry: Planned(entry=entry) for entry in entries}
    stale = _stale(claims, headers)
    planned |= stale
    claims = [claim for claim in claims if claim.entry not in stale]
    firsts = []
    for group in _grouped(claims):
        first, *others = sorted(group, key=lambda claim: claim.order)
        moved = [claim for claim in others if first.entry.is_database and not claim.entry.is_temporary]
        firsts.append(replace(first, note=_moved_note(moved)) if moved else first)
        planned |= {claim.entry: _behind(claim, first) for claim in others}
        for claim in moved:
            del planned[claim.entry]
    planned |= _opened(firsts, channels)
    return [planned[entry] for entry in entries if entry in planned]


def _stale(claims: Sequence[_Claim], headers: Mapping[Entry, Header | None]) -> dict[Entry, Planned]:
    """Return the files of sessions that went on in a database, of which just they cannot be read."""
    lost = {
        (real_workspace(entry.folder), entry.key): entry
        for entry, header in headers.items()
        if header is None and isinstance(entry, DatabaseEntry)
    }
    found: dict[Entry, Planned] = {}
    for claim in claims:
        newer = lost.get((real_workspace(claim.entry.folder), claim.key))
        if newer is not None:
            problem = f"nanobot went on with it in {newer.label}, which cannot be read"
            found[claim.entry] = Planned(entry=claim.entry, key=claim.key, problem=problem)
    return found


def peek(entry: Entry, *, zone: tzinfo, now: datetime) -> Header | None:
    """Return what a file says of itself, or None if there is nothing in it that can be read."""
    try:
        data, changed = entry.read()
    except OSError:
        return None
    rows = read_lines(b"\n".join(line for line in data.split(b"\n") if b'"_type"' in line)).objects
    found = [row.value for row in rows if row.value.get("_type") == METADATA]
    if not (found or any("role" in row.value for row in read_lines(data).objects)):
        return None
    header = read_header(found[-1] if found else {}, zone=zone, fallback=file_time(changed, now))
    return header if header.identity else replace(header, identity=_first_row(data))


def _first_row(data: bytes) -> str:
    """Return what tells a session apart that does not say when it was made: the hash of its first row."""
    lines = (line.strip() for line in data.split(b"\n"))
    first = next((line for line in lines if line and b'"_type"' not in line), b"")
    return f"row {hashlib.sha256(first).hexdigest()}" if first else ""


def file_time(changed: float, now: datetime) -> datetime:
    """Return when a file was changed, or `now` for a time that is none."""
    try:
        return datetime.fromtimestamp(changed, UTC)
    except (ValueError, OverflowError, OSError):
        return now


def _claim(entry: Entry, header: Header, by_lossy: Mapping[str, str]) -> _Claim:
    stem, stored, spelled = entry.stem, header.key, decoded_name(entry.stem)
    if stored and storage_name(stored) == stem:
        return _Claim(entry=entry, header=header, key=stored, fit=_CANONICAL)
    if stored and lossy_name(stored) == stem:
        return _Claim(entry=entry, header=header, key=stored, fit=_LOSSY)
    if spelled is not None:
        note = f"its file is named for {spelled!r}, as nanobot has it, though it says {stored!r}" if stored else ""
        return _Claim(entry=entry, header=header, key=spelled, fit=_CANONICAL, note=note)
    if stored:
        note = f"its file is not named as nanobot names the one of {stored!r}"
        return _Claim(entry=entry, header=header, key=stored, fit=_STRAY, note=note)
    key = by_lossy.get(stem) or guessed_key(stem)
    return _Claim(entry=entry, header=header, key=key, fit=_LOSSY, note=f"its key {key!r} is guessed from its name")


def _grouped(claims: Iterable[_Claim]) -> list[list[_Claim]]:
    """Return the claims to each session; the same key in two workspaces names two sessions."""
    groups: dict[tuple[str, str], list[_Claim]] = {}
    for claim in claims:
        groups.setdefault((real_workspace(claim.entry.folder), claim.key), []).append(claim)
    return list(groups.values())


def _moved_note(moved: Sequence[_Claim]) -> str:
    return f"nanobot moved it here from {', '.join(claim.entry.label for claim in moved)}, which is not read"


def _behind(claim: _Claim, first: _Claim) -> Planned:
    """Return what becomes of a file that nanobot does not look at, because another comes first."""
    entry, place = claim.entry, first.entry.label
    if entry.is_temporary:
        problem = f"it is left of a save that never ended; {place} is read instead"
        return Planned(entry=entry, key=claim.key, problem=problem)
    note = f"nanobot itself reads {place} for {claim.key!r} and never {entry.label}, which this is"
    id = imported_id("nanobot", claim.key, claim.header.identity, entry.label)
    return Planned(entry=entry, key=claim.key, id=id, is_closed=True, notes=_notes(claim.note, note))


def _opened(firsts: Sequence[_Claim], channels: Mapping[str, str]) -> dict[Entry, Planned]:
    """Return what becomes of the files that are read first: open, but for the older of two with one key of ours."""
    newest: dict[SessionKey, _Claim] = {}
    ours = {claim.entry: _ours(claim.key, channels) for claim in firsts}
    for claim in sorted(firsts, key=lambda claim: claim.header.updated_at):
        if (key := ours[claim.entry]) is not None:
            newest[key] = claim
    ids: set[str] = set()
    found: dict[Entry, Planned] = {}
    for claim in firsts:
        key = ours[claim.entry]
        planned = _open(claim, ids)
        winner = claim if key is None else newest[key]
        found[claim.entry] = planned if winner is claim else _closed(planned, winner)
    return found


def _ours(key: str, channels: Mapping[str, str]) -> SessionKey | None:
    try:
        return session_key(key, channels)
    except InvalidKey:
        return None


def _open(claim: _Claim, ids: set[str]) -> Planned:
    entry, names = claim.entry, (claim.key, claim.header.identity)
    id = imported_id("nanobot", *names)
    if id in ids:
        id = imported_id("nanobot", *names, entry.label, whole(str(entry.folder.workspace)))
    ids.add(id)
    note = "it is left of a save that never ended" if entry.is_temporary else ""
    return Planned(entry=entry, key=claim.key, id=id, notes=_notes(claim.note, note))


def _closed(planned: Planned, winner: _Claim) -> Planned:
    note = f"{winner.key!r} has the same key here and was used later, so this one is closed"
    return replace(planned, is_closed=True, notes=(*planned.notes, note))


def _notes(*notes: str) -> tuple[str, ...]:
    return tuple(note for note in notes if note)
