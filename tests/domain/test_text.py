"""Text as a person sees it: whole characters, cut between them, with nothing in it that could drive a terminal."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.text import LONGEST_CHARACTER, inert, is_inside_character, last_cut, one_line, visible, whole

ANY = st.text(alphabet=st.characters(exclude_categories=()))
SEEN_AS_ONE = [
    "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "🏴\U000e0067\U000e0062\U000e007f", "e\u0301\u0323", "क्षि", "각",
    "\u1112\u1161\u11ab", "ｶ\uff9e", "\r\n",
]  # fmt: skip
CHARACTERS = st.lists(st.sampled_from([*SEEN_AS_ONE, "a", " ", "漢", "𠀀", "é", "ß", "😀"]), max_size=40)


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def ends_of(characters: list[str]) -> set[int]:
    """Every place between two characters, and both ends of the text."""
    return {len("".join(characters[:count])) for count in range(len(characters) + 1)}


@pytest.mark.parametrize(
    ("torn", "mended"),
    [
        ("a\ud83d\ude00b", "a😀b"),
        ("\ud83d", "\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("half \ud83d of one", "half \ufffd of one"),
        ("a\x00b", "a\ufffdb"),
        ("größer 😀", "größer 😀"),
        ("", ""),
    ],
)
def test_halves_are_joined_or_replaced_and_so_is_nul(torn: str, mended: str) -> None:
    assert whole(torn) == mended


@given(ANY)
def test_a_whole_text_can_be_sent_and_stored_and_is_mended_once(text: str) -> None:
    mended = whole(text)
    mended.encode()
    assert "\x00" not in mended
    assert whole(mended) == mended


@given(ANY)
def test_mending_moves_no_offset_in_a_text(text: str) -> None:
    assert utf16_length(whole(text)) == utf16_length(text)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_a_text_without_fault_stays_as_it_is(text: str) -> None:
    assert whole(text) == text


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J\x90q\x9c", "\\x9b2J\\x90q\\x9c"),
        ("bad\rgood\x08\x00\x7f", "bad\\x0dgood\\x08\\x00\\x7f"),
        ("a\tb\r\nc\n", "a\tb\nc\n"),
        ("größer 你好 👩‍👩‍👧", "größer 你好 👩‍👩‍👧"),
    ],
)
def test_a_control_character_is_shown_instead_of_sent(sent: str, shown: str) -> None:
    assert visible(sent) == shown


@given(ANY)
def test_what_is_visible_holds_no_control_but_line_ends_and_tabs(text: str) -> None:
    controls = {character for character in visible(text) if unicodedata.category(character) == "Cc"}
    assert controls <= {"\n", "\t"}
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(exclude_categories=(), exclude_characters="\\\r")))
def test_what_was_made_visible_can_be_read_back(text: str) -> None:
    assert re.sub(r"\\x([0-9a-f]{2})", lambda escape: chr(int(escape[1], 16)), visible(text)) == text


def test_what_would_show_a_line_in_another_order_is_an_escape() -> None:
    assert inert("a\u202eb\u2066c\u2069\n\x1bd") == "a\\u202eb\\u2066c\\u2069\n\\x1bd"


@given(ANY)
def test_one_line_is_one_and_moves_nothing(text: str) -> None:
    line = one_line(text)
    assert line == " ".join(line.split())
    assert len(line.splitlines()) <= 1
    assert not re.search("[\u202a-\u202e\u2066-\u2069\ud800-\udfff\x00-\x1f]", line)


@pytest.mark.parametrize("character", SEEN_AS_ONE)
def test_no_cut_goes_through_what_is_seen_as_one_character(character: str) -> None:
    text = f"a{character}{character}b"
    between = [cut for cut in range(len(text) + 1) if not is_inside_character(text, cut)]
    assert between == [0, 1, 1 + len(character), 1 + 2 * len(character), len(text)]


@given(CHARACTERS, st.integers(0, 300), st.integers(0, 300))
def test_a_cut_lies_between_characters_and_as_far_along_as_may_be(
    characters: list[str], start: int, limit: int
) -> None:
    text = "".join(characters)
    limit = min(limit, len(text))
    start = min(start, limit)
    ends = {end for end in ends_of(characters) if start < end <= limit}
    assert last_cut(text, start, limit) == max(ends, default=limit)


@given(ANY, st.integers(0, 200), st.integers(0, 200))
def test_a_cut_always_goes_forward_and_never_beyond_its_limit(text: str, start: int, limit: int) -> None:
    limit = min(limit, len(text))
    if start < limit:
        assert start < last_cut(text, start, limit) <= limit


def test_a_heap_of_marks_that_is_no_character_is_cut_where_the_limit_is() -> None:
    heap = "e" + "\u0301" * 1000
    assert last_cut(heap, 0, 900) == 900
    assert last_cut(heap, 0, LONGEST_CHARACTER) == LONGEST_CHARACTER


def test_two_flags_are_cut_between_them_and_not_in_the_second() -> None:
    flags = "🇩🇪🇫🇷"
    assert [is_inside_character(flags, cut) for cut in range(5)] == [False, True, False, True, False]
