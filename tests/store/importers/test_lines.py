"""Reading JSON lines that may be damaged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.store.importers.lines import MOST_REPAIRS, read_lines

GOOD = [{"role": "user", "content": f"row {n} \u2028 äöü"} for n in range(8)]
FILE = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in GOOD)


def values(data: bytes) -> list[dict[str, Any]]:
    return [line.value for line in read_lines(data).objects]


@pytest.mark.parametrize(
    "data",
    [
        FILE,
        FILE.removesuffix(b"\n"),
        b"\xef\xbb\xbf" + FILE,
        FILE.replace(b"\n", b"\r\n"),
        FILE.replace(b"\n", b"\n \n\n"),
        FILE.replace(b"\n", b" "),
        FILE.replace(b"\n", b""),
    ],
    ids=["whole", "no last line end", "byte order mark", "line ends of Windows", "blank lines", "spaces", "fused"],
)
def test_a_file_is_read_however_its_rows_are_parted(data: bytes) -> None:
    assert values(data) == GOOD
    assert read_lines(data).repairs == []


def test_rows_know_the_line_they_stand_in() -> None:
    found = read_lines(b'{"a":1}\n\n{"a":2}{"a":3}\nx\n{"a":4}')
    assert [(line.number, line.value["a"]) for line in found.objects] == [(1, 1), (3, 2), (3, 3), (5, 4)]
    assert found.lost == [4]


@pytest.mark.parametrize(
    ("line", "repair"),
    [
        (b"{half", "line 2: not JSON, left out"),
        (b'{"role": "user", "content": "ha', "line 2: not JSON, left out"),
        (b"[1, 2]", "line 2: no object, left out"),
        (b"null", "line 2: no object, left out"),
        (b"\0" * 4096, "line 2: 4096 zero bytes, left out"),
        (b"[" * 100_000, "line 2: not JSON, left out"),
        (b'{"a":' * 100_000, "line 2: not JSON, left out"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "line 2: nested too deeply, left out"),
    ],
)  # fmt: skip
def test_what_is_no_row_costs_itself_and_is_told(line: bytes, repair: str) -> None:
    found = read_lines(b'{"n": 1}\n' + line + b'\n{"n": 3}\n')
    assert [row.value for row in found.objects] == [{"n": 1}, {"n": 3}]
    assert found.repairs == [repair]


def test_a_bad_byte_costs_a_character() -> None:
    found = read_lines(b'{"role": "user", "content": "caf\xe9 au lait"}\n')
    assert found.objects[0].value["content"] == "caf\ufffd au lait"
    assert found.repairs == ["line 1: bytes that are no UTF-8, replaced by \ufffd"]


def test_zero_bytes_before_a_row_cost_nothing_but_themselves() -> None:
    assert values(b"\0\0\0" + FILE) == GOOD


def test_a_row_behind_a_torn_one_is_found() -> None:
    found = read_lines(b'{"role": "user", "content": "ha{"role": "user", "content": "whole", "x": {"role": 1}}\n')
    assert [row.value["content"] for row in found.objects] == ["whole"]
    assert found.repairs == ["line 1: not JSON, the rows around it are kept"]


def test_the_inside_of_a_torn_row_is_no_row() -> None:
    assert values(b'{"role": "assistant", "calls": [{"role": "x"}, {"role": "y"}], "te\n') == []


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("12345678901234567890123", 12345678901234567890123),
        (r'"\ud83d"', "\ufffd"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"a\u0000b"', "a\ufffdb"),
        (r'{"\udc00": ["\ud800"]}', {"\ufffd": ["\ufffd"]}),
        ('"a\tb"', "a\tb"),
    ],
)
def test_values_that_could_not_be_stored_are_read_as_ones_that_can(text: str, read: object) -> None:
    (row,) = values(f'{{"v": {text}}}'.encode())
    assert row == {"v": read}
    json.dumps(row, allow_nan=False).encode()


def test_only_some_damages_are_told_one_by_one() -> None:
    found = read_lines(b"x\n" * (MOST_REPAIRS + 7))
    assert len(found.repairs) == MOST_REPAIRS + 1
    assert found.repairs[-1] == "and 7 damages more"


@given(st.binary(max_size=400))
def test_no_bytes_raise_and_what_is_no_row_is_told(data: bytes) -> None:
    found = read_lines(data)
    assert all(isinstance(line.value, dict) for line in found.objects)
    assert found.repairs or not found.lost


@given(st.data())
def test_damage_costs_at_most_the_lines_it_touches(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(FILE)))
    removed = data.draw(st.integers(0, 30))
    inserted = data.draw(st.binary(max_size=40))
    end = min(len(FILE), at + removed)
    touched = range(FILE.count(b"\n", 0, at), FILE.count(b"\n", 0, end) + 1)
    left = values(FILE[:at] + inserted + FILE[end:])
    kept = [row for number, row in enumerate(GOOD) if number not in touched]
    assert [row for row in left if row in kept] == kept
