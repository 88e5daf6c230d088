"""Reading our own JSON lines back: what was written is there again, and damage costs what is damaged."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.errors import Refused, Unavailable
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, Mark, Role
from gateway.ports.moving import FoundSession
from gateway.ports.sessions import NewSession, Restored, Retired, SessionCopy
from gateway.store.jsonl.reader import TrunklineSource
from gateway.store.jsonl.writer import closing
from tests.clock import ManualClock
from tests.store.jsonl.written import HEADER, NOON, lines, listed, read, read_file, read_one, row, written
from tests.store.strategies import FILES, copies, files_of, unhurried
from tests.stores import open_engine

THREE = SessionCopy(session=HEADER, rows=(row(1), row(2), row(3)))
OTHER = SessionCopy(
    session=replace(HEADER, id="s2", key=SessionKey("slack", "D2")), rows=(row(8, content="secret"), row(9))
)


def changed(number: int, **fields: Any) -> str:
    """Return three rows with other fields in a line, numbered from 1."""
    kept = written(THREE)
    kept[number - 1] = json.dumps(json.loads(kept[number - 1]) | fields) + "\n"
    return "".join(kept)


def seqs(found: FoundSession) -> list[int]:
    assert found.copy is not None
    return [row.seq for row in found.copy.rows]


@unhurried
@given(st.lists(copies(), max_size=3, unique_by=lambda copy: copy.session.id))
def test_what_was_written_is_read_back_the_same(several: list[SessionCopy]) -> None:
    found = read_file("".join([*written(*several), closing(len(several))]))
    assert [one.copy for one in found] == [listed(copy) for copy in several]
    assert [(*one.repairs, *one.notes, one.problem) for one in found] == [("",)] * len(several)
    for one, copy in zip(found, several, strict=True):
        assert {ref: file.path and file.path.read_bytes() for ref, file in one.files.items()} == {
            stored.ref: FILES[stored.ref] for stored, _ in files_of(copy)
        }


@unhurried
@given(copies(), st.data())
def test_a_line_that_is_lost_costs_itself_and_is_told(copy: SessionCopy, data: st.DataObject) -> None:
    whole = written(copy)
    number = data.draw(st.integers(2, len(whole)))
    how = data.draw(st.sampled_from([b"", b"\n", b"{\n", b"[1]\n", b"\xff\xfe\n"]))
    torn = b"".join(how if n == number else line.encode() for n, line in enumerate(whole, start=1))
    found = read_one(torn)
    if not how or how == b"\n" or number == len(whole):
        assert found.copy is None
        assert ("is missing" if number < len(whole) else "has no end") in found.problem
        return
    assert found.copy is not None
    assert found.repairs[0].startswith(f"line {number}: ")
    lost = json.loads(whole[number - 1])
    assert [one.seq for one in found.copy.rows] == [
        one.seq for one in copy.rows if (lost["type"], lost.get("seq")) != ("row", one.seq)
    ]


@unhurried
@given(st.binary(max_size=200) | st.lists(copies(), max_size=2).map(lambda them: "".join(written(*them)).encode()))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    for place in range(0, len(data), max(1, len(data) // 7)):
        for damaged in (data[:place] + b"\xff\0{" + data[place + 5 :], data[:place]):
            for found in read(damaged):
                assert found.copy is not None or found.problem


scraps = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@unhurried
@given(st.integers(1, 5), st.data())
def test_no_value_of_a_field_makes_it_fail(number: int, data: st.DataObject) -> None:
    names = [*json.loads(written(THREE)[number - 1]), "marks", "kind", "sender", "media", "grants", "moved_at"]
    fields = data.draw(st.dictionaries(st.sampled_from(names), scraps, max_size=3))
    for found in read(changed(number, **fields)):
        assert found.copy is not None or found.problem


def test_half_a_session_of_a_file_that_was_cut_short_is_not_imported_for_good() -> None:
    for kept in range(1, 5):
        found = read_one("".join(written(THREE)[:kept]))
        assert found.copy is None
        assert found.problem == (
            "the session that begins in line 1 has no end, so it was cut short, and is not imported by half; "
            "import a whole export of it"
        )


def test_a_session_of_which_lines_are_missing_without_a_trace_is_not_imported_by_half() -> None:
    found = read_one(changed(5, rows=4))
    assert found.repairs == ["line 5: 4 rows were written, and 3 could be read"]
    assert (found.copy, found.problem.startswith("1 line is missing of the session, so it was cut")) == (None, True)


def test_a_file_that_was_cut_between_two_sessions_is_noticed() -> None:
    first, cut = read_file("".join(written(THREE)))
    assert first.copy == THREE
    assert (cut.copy, "without its closing line" in cut.problem) == (None, True)
    assert [one.copy for one in read_file("".join([*written(THREE, OTHER), closing(2)]))] == [THREE, OTHER]


def test_two_exports_that_were_joined_are_one_file_and_a_session_that_is_gone_from_it_is_noticed() -> None:
    one, other = [*written(THREE), closing(1)], [*written(OTHER), closing(2)]
    assert [found.copy for found in read_file("".join([*one, *one]))] == [THREE, THREE]
    found = read_file("".join([*one, *other]))
    assert [one.copy for one in found] == [THREE, OTHER, None]
    assert found[-1].problem == "line 11: 2 sessions were written, and 1 were found"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        ('{"_type": "metadata", "key": "slack:C1"}\n{"role": "user"}\n', "use `trunkline import nanobot`"),
        ("SQLite format 3\0...\n..", "it is a database"),
        ("# Markdown\n\nwords\n", "it is nothing that"),
    ],
)
def test_a_file_of_another_kind_is_one_sentence_and_not_a_hundred_damaged_lines(text: str, said: str) -> None:
    (found,) = read_file(text)
    assert (found.copy, said in found.problem, found.repairs) == (None, True, ())


def test_a_newer_format_is_not_guessed_at() -> None:
    found, after = read(changed(1, format=2) + "".join(written(OTHER)))
    assert (found.name, found.copy, found.problem) == (
        "s1",
        None,
        "line 1: written in format 2, and this release reads 1",
    )
    assert after.copy == OTHER


def test_rows_before_any_session_are_told_and_not_kept() -> None:
    stray, found = read("".join(written(THREE)[1:3] + written(OTHER)))
    assert (stray.copy, stray.problem) == (
        None,
        "2 lines from line 1 on belong to no session whose header could be read",
    )
    assert found.copy == OTHER


def test_rows_whose_header_is_lost_do_not_join_the_session_before() -> None:
    first, stray = read("".join(written(THREE) + written(OTHER)[1:]))
    assert seqs(first) == [1, 2, 3]
    assert stray.problem.startswith("3 lines from line 6 on")
    first, stray = read("".join(written(THREE)[:4] + written(OTHER)[1:]))
    assert (first.copy, stray.problem[:22]) == (None, "3 lines from line 5 on")


def test_a_single_line_that_belongs_to_no_session_is_one_line() -> None:
    assert read("".join(written(THREE)[1:2]))[0].problem.startswith("line 1 belongs to no session")


def test_a_session_behind_a_cut_line_is_found_where_two_files_were_joined() -> None:
    cut = "".join(written(THREE))[:-100]
    first, second = read(cut + "".join(written(OTHER)))
    assert (first.copy, "no end" in first.problem) == (None, True)
    assert second.copy == OTHER


def test_a_session_without_a_key_is_none_and_its_rows_are_nobodys() -> None:
    found = read_one(changed(1, key="nowhere"))
    assert (found.copy, found.problem) == (None, "line 1: expected the key of a session, got 'nowhere'")


def test_a_field_that_cannot_be_read_costs_itself() -> None:
    found = read_one(changed(2, sender=7, created_at="2026-11-30T12:00:00", tokens=1 << 70))
    assert found.copy is not None
    assert found.copy.rows[0] == row(1, created_at=None)
    assert sorted(found.repairs) == [
        f"line 2: no {name} that can be read, left out" for name in ("created_at", "sender", "tokens")
    ]


def test_what_a_newer_release_may_write_hides_a_row_rather_than_shows_it() -> None:
    found = read_one(changed(2, role="oracle", marks=["frozen"]))
    assert found.copy is not None
    odd = found.copy.rows[0]
    assert (odd.role, odd.kind, odd.marks) == (Role.SYSTEM, Kind.NOTICE, frozenset({Mark.DELETED}))


def test_a_place_is_taken_once() -> None:
    found = read_one(changed(3, seq=1))
    assert seqs(found) == [1, 3]
    assert found.repairs[0] == "line 3: there was a row 1 before; the line is left out"


def test_an_event_is_one_row() -> None:
    twice = SessionCopy(session=HEADER, rows=[row(1, event_id="e"), row(2, event_id="e")])
    found = read_one("".join(written(twice)))
    assert found.copy is not None
    assert [one.event_id for one in found.copy.rows] == ["e", None]
    assert found.repairs == ["row 2: its event is that of an earlier row, left out"]


def test_an_export_that_may_not_be_read_is_a_sentence(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read_it in (lambda source: source.count(), lambda source: list(source.sessions())):
        for place in (tmp_path, pipe):
            with pytest.raises(Refused, match="which is no file"):
                read_it(TrunklineSource(place))
        with pytest.raises(Refused, match="File name too long"):
            read_it(TrunklineSource(tmp_path / ("x" * 300)))
        with pytest.raises(Refused, match="there is no such file"):
            read_it(TrunklineSource(tmp_path / "none"))


def test_an_export_that_breaks_off_while_it_is_read_is_a_sentence() -> None:
    class Torn(io.BytesIO):
        def __next__(self) -> bytes:
            raise OSError(5, "Input/output error")

    for read_it in (lambda source: source.count(), lambda source: list(source.sessions())):
        with pytest.raises(Unavailable, match="Input/output error"):
            read_it(TrunklineSource(Torn()))


def test_torn_characters_and_zeros_are_replaced() -> None:
    found = read_one("".join(written(THREE)).replace("words 1", r"\ud800x\u0000"))
    assert found.copy is not None
    assert found.copy.rows[0].content == "\ufffdx\ufffd"


def test_many_damages_are_counted_and_not_all_told() -> None:
    kept = written(THREE)
    found = read_one("".join([*kept[:4], *["{\n"] * 200, kept[4]]))
    assert len(found.repairs) == 51
    assert found.repairs[-1] == "and 150 damages more"


def test_sessions_are_counted_without_reading_them(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("".join([*written(THREE, OTHER), closing(2)]))
    assert TrunklineSource(path).count() == 2
    stream = io.BytesIO(path.read_bytes())
    source = TrunklineSource(stream)
    assert source.count() == 2
    assert [found.name for found in source.sessions()] == ["s1", "s2"]


async def test_a_session_is_carried_from_one_store_into_another(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    clock = ManualClock()
    async with open_engine("sqlite", tmp_path / "a", clock) as store:
        opened = await store.sessions.open(Route("slack", "D1").key, NewSession(metadata={"a": [1]}))
        await store.sessions.append(opened.id, [row(0), row(0, role=Role.ASSISTANT), row(0)])
        await store.sessions.mark(opened.id, [2], Mark.UNDONE)
        await store.sessions.retire(opened.id, [1], "retention")
        copy = listed(await store.sessions.copy(opened.id))
    found = read_one("".join(lines(copy)))
    assert found.copy == copy
    async with open_engine("sqlite", tmp_path / "b", clock) as store:
        assert await store.sessions.restore(found.copy) is Restored.ADDED
        assert listed(await store.sessions.copy(opened.id)) == copy


async def test_what_is_read_of_a_strange_file_can_be_stored(tmp_path: Path) -> None:
    strange = SessionCopy(
        session=HEADER,
        rows=[row(1, event_id="e", marks=frozenset({Mark.UNDONE})), row(2, event_id="e"), row(2), row(3)],
        attic=[Retired(row=row(1, marks=frozenset({Mark.UNDONE})), reason="", moved_at=NOON)],
    )
    found = read_one("".join(lines(strange)).replace("words 3", r"\udc00"))
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        assert found.copy is not None
        assert await store.sessions.restore(found.copy) is Restored.ADDED
        assert [one.seq for one in (await store.sessions.copy("s1")).rows] == [1, 2, 3]
