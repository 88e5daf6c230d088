"""Files of nanobot that were damaged: what is whole is kept, what is not is told, nothing raises."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.ports.moving import FoundSession
from tests.store.nanobot.nanobot_tree import Row, Tree, canonical, header, lines, user

KEY = "slack:C1"
ROWS: list[Row] = [user(f"row {n} äöü") for n in range(6)]
GOOD = lines(header(KEY), *ROWS)
TEXTS = [row["content"] for row in ROWS]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def read(tree: Tree, data: bytes) -> FoundSession:
    tree.put(data, canonical(KEY))
    (found,) = tree.found()
    return found


def texts(found: FoundSession) -> list[object]:
    return [row.content for row in found.copy.rows] if found.copy else []


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "it is empty"),
        (b" \n\t\r\n", "it is empty"),
        (b"\0" * 8192, "there is nothing in it that can be read"),
        (GOOD[:40], "there is nothing in it that can be read"),
        (b"[1]\nnull\n", "there is nothing in it that can be read"),
        (b"\x89PNG\r\n\x1a\n", "there is nothing in it that can be read"),
    ],
)
def test_a_file_with_nothing_in_it_is_told(tree: Tree, data: bytes, problem: str) -> None:
    """Case C2."""
    tree.session("telegram:1", user("other"))
    tree.put(data, canonical(KEY))
    found = {one.name: one for one in tree.found()}
    assert found[f"{canonical(KEY)} ({KEY})"].problem == problem
    assert texts(found["telegram:1"]) == ["other"]


def test_a_line_that_was_cut_off_costs_itself(tree: Tree) -> None:
    """Case C3."""
    found = read(tree, GOOD[:-20])
    assert texts(found) == TEXTS[:-1]
    assert found.repairs == ["line 7: not JSON, left out"]


def test_a_damaged_first_line_costs_the_header_and_no_row(tree: Tree) -> None:
    found = read(tree, GOOD[1:])
    assert (found.name, texts(found)) == (KEY, TEXTS)
    assert found.repairs == ["line 1: not JSON, left out"]
    assert list(found.notes) == ["it has no row of metadata; its times are the file's"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"}\n", b"}"),
        GOOD + b"\0" * 512,
        b"\0" * 512 + GOOD,
        GOOD + b"\xff\xfe\n",
        GOOD + b"7\n[]\nnull\n",
        GOOD + b"[" * 50_000,
    ],
)
def test_damage_around_rows_costs_none(tree: Tree, data: bytes) -> None:
    assert texts(read(tree, data)) == TEXTS


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_costs_at_most_the_lines_it_touches(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD)))
    end = min(len(GOOD), at + data.draw(st.integers(0, 60)))
    inserted = data.draw(st.binary(max_size=60))
    touched = range(GOOD.count(b"\n", 0, at), GOOD.count(b"\n", 0, end) + 1)
    with tempfile.TemporaryDirectory() as place:
        found = read(Tree(Path(place)), GOOD[:at] + inserted + GOOD[end:])
    kept = [text for number, text in enumerate(TEXTS, start=1) if number not in touched]
    assert [text for text in texts(found) if text in kept] == kept


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(1, 255)), max_size=20), st.binary(max_size=80))
def test_flipped_and_appended_bytes_never_raise(flips: list[tuple[int, int]], tail: bytes) -> None:
    damaged = bytearray(GOOD)
    for at, mask in flips:
        damaged[at] ^= mask
    with tempfile.TemporaryDirectory() as place:
        found = read(Tree(Path(place)), bytes(damaged) + tail)
    assert found.copy or found.problem
