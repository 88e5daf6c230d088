"""Taking sessions in: what is kept of their files, what is told, and what happens where nothing can be kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gateway.domain.errors import Unavailable
from gateway.domain.keys import SessionKey
from gateway.domain.message import MediaRef, Message, Role
from gateway.domain.session import Session
from gateway.media import FileMedia
from gateway.ports.moving import FoundSession, LocalFile, Source
from gateway.ports.sessions import NewSession, SessionCopy
from gateway.sessions.moving import AT_ONCE, Importer, Outcome, Taken
from gateway.store import Store
from tests.media.rig import full_disk, read
from tests.stores import NOON

LIMIT = 2_000_000


class Given(Source):
    """Sessions as they are given."""

    def __init__(self, *found: FoundSession) -> None:
        self._found = found

    def count(self) -> int:
        return len(self._found)

    def sessions(self) -> Iterator[FoundSession]:
        yield from self._found


def found(number: int = 1, file: LocalFile | None = None, *, done: list[int] | None = None) -> FoundSession:
    """Return a session of one row, which names a file."""
    media = (MediaRef(ref="file:0" if file else "", kind="image", name="cat.png", mime="image/png"),)
    row = Message(role=Role.USER, content="look", seq=1, created_at=NOON, media=media)
    session = Session(id=f"s{number}", key=SessionKey("slack", f"D{number}"), created_at=NOON, updated_at=NOON)
    return FoundSession(
        name=f"session {number}",
        copy=SessionCopy(session=session, rows=[row]),
        files={"file:0": file} if file else {},
        done=lambda: None if done is None else done.append(number),
    )


async def taken(
    store: Store, media: FileMedia, *sessions: FoundSession, dry_run: bool = False, most_bytes: int = LIMIT
) -> Sequence[Taken]:
    return await Importer(store.sessions, media, most_bytes=most_bytes, dry_run=dry_run).take_in(Given(*sessions))


async def media_of(store: Store, number: int = 1) -> MediaRef:
    (row,) = await store.sessions.page(f"s{number}")
    return row.media[0]


async def test_a_session_whose_files_met_a_full_disk_comes_in_with_them_when_it_is_taken_again(
    store: Store, media: FileMedia, tmp_path: Path
) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"x" * 900_000)
    one = found(1, LocalFile(path=picture))
    with full_disk(800_000), pytest.raises(Unavailable, match="File too large"):
        await taken(store, media, one)
    (line,) = await taken(store, media, one)
    assert (line.outcome, line.files) == (Outcome.IMPORTED, 1)
    assert await read(media, (await media_of(store)).ref) == b"x" * 900_000


async def test_what_cannot_be_kept_is_raised_as_itself_when_every_worker_has_ended(
    store: Store, media: FileMedia
) -> None:
    done: list[int] = []
    sessions = [found(number, LocalFile(data=b"x" * 900_000), done=done) for number in range(AT_ONCE * 2)]
    with full_disk(800_000), pytest.raises(Unavailable):
        await taken(store, media, *sessions)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert 0 < len(done) < len(sessions)


async def test_the_source_is_left_alone_before_the_failure_is_told(store: Store, media: FileMedia) -> None:
    reading = threading.Event()
    is_in_source = False

    class Slow(Source):
        def count(self) -> int:
            return 2

        def sessions(self) -> Iterator[FoundSession]:
            nonlocal is_in_source
            yield found(1, LocalFile(data=b"x" * 900_000))
            is_in_source = True
            reading.wait(0.5)
            is_in_source = False
            yield found(2)

    with full_disk(800_000), pytest.raises(Unavailable):
        await Importer(store.sessions, media, most_bytes=LIMIT).take_in(Slow())
    assert not is_in_source


async def test_a_bug_is_not_told_as_something_that_was_foreseen(store: Store, media: FileMedia) -> None:
    def told(line: Taken) -> None:
        raise RuntimeError(line.name)

    importer = Importer(store.sessions, media, most_bytes=LIMIT)
    with pytest.raises(ExceptionGroup):
        await importer.take_in(Given(found()), told)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_trial_tells_of_each_session_what_an_import_would(
    store: Store, media: FileMedia, dry_run: bool
) -> None:
    await taken(store, media, found(1), found(2))
    await store.sessions.delete("s1")
    await store.sessions.open(SessionKey("slack", "D3"), NewSession())
    sessions = [found(number, LocalFile(data=b"x")) for number in (1, 2, 3, 4)]
    report = await taken(store, media, *sessions, dry_run=dry_run)
    assert [(line.outcome, line.why, line.files) for line in report] == [
        (Outcome.SKIPPED, "it was imported before and has been deleted since", 0),
        (Outcome.THERE, "", 0),
        (Outcome.IMPORTED_CLOSED, "", 1),
        (Outcome.IMPORTED, "", 1),
    ]
    assert [len(line.notes) for line in report] == [0, 0, 1, 0]
    assert [(line.is_imported, line.is_skipped) for line in report] == [
        (False, True), (False, False), (True, False), (True, False),
    ]  # fmt: skip
    assert await media.usage() == (0 if dry_run else 1)


async def test_a_file_that_cannot_be_read_costs_itself_and_its_place_is_not_told(
    store: Store, media: FileMedia, tmp_path: Path
) -> None:
    (line,) = await taken(store, media, found(1, LocalFile(path=tmp_path / "gone.png")))
    assert line.outcome is Outcome.IMPORTED
    assert line.notes == ["the file cat.png is not copied: it cannot be read: No such file or directory"]
    assert ((await media_of(store)).ref, (await media_of(store)).name) == ("", "cat.png")


async def test_a_file_beyond_the_limit_of_this_gateway_is_told_and_its_name_is_kept(
    store: Store, media: FileMedia
) -> None:
    lines = await taken(store, media, found(1, LocalFile(data=b"12345")), most_bytes=4)
    assert ["it has 5 bytes, and at most 4 are kept" in note for note in lines[0].notes] == [True]
    lines = await taken(store, media, found(2, LocalFile(data=b"1234")), most_bytes=4)
    assert (lines[0].notes, (await media_of(store, 2)).size_bytes) == ([], 4)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_what_was_put_aside_for_a_session_is_removed_once_it_is_taken(
    store: Store, media: FileMedia, dry_run: bool
) -> None:
    done: list[int] = []
    await taken(store, media, *(found(number, LocalFile(data=b"x"), done=done) for number in (1, 2)), dry_run=dry_run)
    assert sorted(done) == [1, 2]
