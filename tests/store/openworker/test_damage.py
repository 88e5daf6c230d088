"""Importing from openworker what is damaged or not to be trusted; its files stay as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.errors import Refused
from gateway.store.openworker.rows import Pictures, read_row
from gateway.store.openworker.transcripts import read_inline, read_transcript
from tests.clock import ManualClock
from tests.store.openworker.openworker_tree import (
    CONVERSATION,
    ONE,
    TWO,
    USED_AT,
    Tree,
    contents,
    copy_of,
    lines,
    only,
    read,
    untouched,
)
from tests.stores import open_engine

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from(
    ["role", "content", "tool_calls", "tool_call_id", "name", "ts", "reasoning", "kind", "text", "type", "image_url"]
)
LEAVES = JSON | st.sampled_from(["user", "notice", "assistant", "tool", "data:image/png;base64,AA==", "image_url"])
ROWS = st.dictionaries(NAMES, st.recursive(LEAVES, lambda v: st.lists(v) | st.dictionaries(NAMES, v), max_leaves=5))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = Tree(tmp_path / "coworker")
    tree.session(ONE, title="Mine", renamed=1)
    return tree


def test_the_source_stays_as_it_is(tree: Tree) -> None:
    (found,) = untouched(tree)
    assert copy_of(found).session.title == "Mine"


def test_a_file_that_the_index_does_not_know_is_read(tree: Tree) -> None:
    tree.file(TWO, [{"role": "user", "content": "hi"}])
    os.utime(tree.folder / f"{TWO}.jsonl", (1782900000, 1782900000))
    found = untouched(tree)[1]
    assert list(found.repairs) == ["coworker.db does not know it; its header is made of its rows"]
    assert copy_of(found).session.updated_at.isoformat() == "2026-07-01T10:00:00+00:00"


def test_a_session_without_a_file_is_its_header(tree: Tree) -> None:
    tree.row(TWO, title="gone", pinned=1)
    found = untouched(tree)[1]
    assert (contents(found), copy_of(found).session.pinned) == ([], True)
    assert list(found.notes) == ["it has no file of rows; only its header was found"]


async def test_a_title_survives_the_loss_of_the_rows(tree: Tree, tmp_path: Path) -> None:
    tree.row(TWO, title="What is here?")
    async with open_engine("sqlite", tmp_path, ManualClock()) as store:
        copy = copy_of(untouched(tree)[1])
        await store.sessions.restore(copy)
        assert (await store.sessions.get(copy.session.id)).title == "What is here?"


def test_fewer_rows_than_the_index_counts_are_told_of(tree: Tree) -> None:
    tree.session(TWO, [{"role": "user", "content": "hi"}], n_msgs=9)
    assert list(untouched(tree)[1].notes) == ["the index counts 9 rows, 1 found"]


def test_a_file_that_cannot_be_read_is_a_problem_not_an_empty_session(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deny(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", deny)
    found = only(tree)
    assert (found.copy, "Permission denied" in found.problem) == (None, True)


def test_a_folder_that_cannot_be_listed_is_refused(tree: Tree) -> None:
    for path in tree.folder.iterdir():
        path.unlink()
    tree.folder.rmdir()
    tree.folder.write_text("no folder")
    with pytest.raises(Refused, match="can be listed"):
        read(tree.directory)


@pytest.mark.parametrize(
    ("data", "kept", "repair"),
    [
        (lines(CONVERSATION[:2]) + b'{"role": "us', ["You are a coworker.", "What is here?"], "line 3: not JSON"),
        (lines(CONVERSATION[:2]).replace(b"\n", b"", 1), ["You are a coworker.", "What is here?"], ""),
        (b'{"role": "user", "content": "caf\xe9"}\n', ["caf\ufffd"], "line 1: bytes that are no UTF-8"),
        (b'{"role": "user", "content": "a"}\n\0\0\0\0', ["a"], "line 2: 4 zero bytes"),
        (b'{"role": "us{"role": "user", "content": "a"}\n', ["a"], "line 1: not JSON, the rows around it are kept"),
        (b'[1]\n5\nnull\n"x"\n{"role": "user", "content": "a"}', ["a"], "line 1: no object"),
        (b"[" * 5000 + b"]" * 5000 + b'\n{"role": "user", "content": "a"}', ["a"], "line 1: not JSON"),
        (b"", [], "its file is empty"),
        (b"\0" * 512, [], "line 1: 512 zero bytes"),
    ],
)
def test_damage_in_a_file_costs_what_is_damaged(tree: Tree, data: bytes, kept: list[str], repair: str) -> None:
    tree.session(TWO, data)
    found = untouched(tree)[1]
    assert contents(found) == kept
    assert ([text for text in found.repairs if text.startswith(repair)] != []) == bool(repair)


def test_a_file_of_nothing_that_the_index_does_not_know_is_a_problem(tree: Tree) -> None:
    tree.file(TWO, b"")
    found = untouched(tree)[1]
    assert (found.copy, list(found.repairs)) == (None, ["its file is empty"])
    assert found.problem == "nothing can be read of its file, and the index does not know it"


def test_an_empty_file_beside_rows_in_the_index_does_not_hide_them(tree: Tree) -> None:
    tree.session(TWO, b"", messages=CONVERSATION)
    assert len(contents(untouched(tree)[1])) == 7


@pytest.mark.parametrize("end", [b"", b"]", b", 5]", b", {]", b"\n,\n]\n"])
def test_a_torn_list_in_the_index_gives_the_rows_before_the_tear(tree: Tree, end: bytes) -> None:
    tree.row(TWO, messages=json.dumps(CONVERSATION).encode()[:-1] + end)
    assert contents(untouched(tree)[1])[-1] == "Thanks"


@pytest.mark.parametrize("blob", [b"", b"null", b"{", b"\xff\xfe", b'"x"', b"[[[", 5, 1.5])
def test_rows_in_the_index_that_are_none_leave_the_header(tree: Tree, blob: Any) -> None:
    tree.row(TWO, messages=blob)
    assert contents(untouched(tree)[1]) == []


@pytest.mark.parametrize("junk", ["{", "[1", "5", '"x"', b"\xff\xfe", 5, 1.5, '{"a":1},{"b":2}', '1,"b":2', "[" * 9999])
def test_a_damaged_column_is_set_aside_and_the_rest_is_kept(tree: Tree, junk: Any) -> None:
    names = ("grants", "extra_roots", "team", "compaction")
    tree.session(TWO, title="kept", **dict.fromkeys(names, junk))
    found = untouched(tree)[1]
    session = copy_of(found).session
    assert (session.title, session.grants, session.extra_roots, session.compaction) == ("kept", {}, (), {})
    assert sorted(found.repairs) == [f"the column {name} is damaged and was set aside" for name in sorted(names)]
    assert sorted(session.metadata["openworker"]) == sorted(names)


@pytest.mark.parametrize("empty", [None, "", "null"])
def test_a_column_of_nothing_is_empty_without_a_word(tree: Tree, empty: str | None) -> None:
    tree.session(TWO, grants=empty, extra_roots=empty, compaction=empty, team=empty)
    found = untouched(tree)[1]
    assert (list(found.repairs), copy_of(found).session.metadata) == ([], {})


def test_folders_that_are_none_are_set_aside(tree: Tree) -> None:
    tree.session(TWO, extra_roots=["/x", {"path": "/y"}])
    session = copy_of(untouched(tree)[1]).session
    assert (session.extra_roots, session.metadata) == (({"path": "/y"},), {"openworker": {"extra_roots": ["/x"]}})


@pytest.mark.parametrize("value", [b"\xff", "", "junk", None, 12.5])
def test_columns_of_other_types_never_stop_an_import(tree: Tree, value: Any) -> None:
    names = ("workspace", "model", "mode", "title", "agent", "n_msgs", "pinned", "archived", "origin", "origin_label")
    tree.session(TWO, **dict.fromkeys((*names, "auto_title", "renamed", "updated_at"), value))
    assert len(contents(untouched(tree)[1])) == 7


@pytest.mark.parametrize(
    "name",
    ["../../secret", "..", ".", "a/b", "/etc/x", "x" * 4000, "a\nb", "\x1b[2J", "a\0b", "a:b%", "\\", "", f"./{ONE}"],
)
def test_an_odd_id_reads_no_file_outside_of_the_folder(tree: Tree, name: str) -> None:
    (tree.directory.parent / "secret.jsonl").write_bytes(lines([{"role": "user", "content": "secret"}]))
    tree.row(name, title="odd")
    found = next(one for one in untouched(tree) if one.name != ONE)
    assert (contents(found), copy_of(found).session.title) == ([], "odd")
    assert found.name.isprintable()


def test_an_id_that_is_no_text_finds_its_file_all_the_same(tree: Tree) -> None:
    tree.row(b"caf\xe9", title="odd")
    (tree.folder / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(lines(CONVERSATION))
    found = untouched(tree)[1]
    assert (found.name, len(contents(found)), copy_of(found).session.title) == ("caf\\udce9", 7, "odd")


def test_two_ids_never_become_one(tree: Tree) -> None:
    tree.rows([b"caf\xe9", "caf\\udce9"])
    assert len({copy_of(found).session.id for found in untouched(tree)}) == 3


def test_a_row_without_an_id_is_kept(tree: Tree) -> None:
    tree.row(None, title="nobody")
    assert copy_of(untouched(tree)[1]).session.title == "nobody"


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tree: Tree) -> None:
    outside = tree.directory.parent / "secret.jsonl"
    outside.write_bytes(lines([{"role": "user", "content": "secret"}]))
    (tree.folder / f"{TWO}.jsonl").symlink_to(outside)
    assert untouched(tree)[1].copy is None


WHOLE = lines([{"role": "user", "content": f"row {n}"} for n in range(20)])


@given(at=st.integers(0, len(WHOLE)), length=st.integers(0, 60), junk=st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_random_bytes_in_a_file_cost_at_most_the_lines_they_touch(at: int, length: int, junk: bytes) -> None:
    touched = WHOLE[: at + length].count(b"\n") - WHOLE[:at].count(b"\n") + 1
    found = read_transcript(WHOLE[:at] + junk + WHOLE[at + length :])
    kept = {str(raw.get("content")) for raw in found.objects}
    assert len([n for n in range(20) if f"row {n}" not in kept]) <= touched
    assert len(found.places) == len(found.objects)
    assert list(found.places) == sorted(set(found.places))
    assert all(place < found.length for place in found.places)


@given(raw=ROWS)
@settings(max_examples=100, deadline=None)
def test_no_row_of_json_raises(raw: dict[str, Any]) -> None:
    for value in read_transcript(lines([raw])).objects:
        row = read_row(value, 1, Pictures())
        json.dumps(dict(row.extra), allow_nan=False)


@given(data=st.binary(max_size=200), at=st.integers(0, 700))
@settings(max_examples=200, deadline=None)
def test_no_list_in_the_index_raises(data: bytes, at: int) -> None:
    whole = json.dumps(CONVERSATION).encode()
    read_inline(data)
    read_inline(whole[:at] + data + whole[at:])


def test_the_times_of_the_rows_are_those_of_the_index_where_they_have_none(tree: Tree) -> None:
    assert copy_of(only(tree)).rows[0].created_at == USED_AT
