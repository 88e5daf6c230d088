"""What is indexed of a text, what a searched word means, and the words around a match."""

from __future__ import annotations

import hashlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.searching import LOOKED_THROUGH, SNIPPET_LENGTH, Snippets, Term, searchable, terms
from gateway.domain.text import is_inside_character

ANY = st.text(st.characters(exclude_categories=["Cs"]))
MIXED = st.lists(
    st.sampled_from([*"漢かก한aéß İΣ😀🇩-*\n", "e\u0301", "ิ", "\ufe0f", "👩‍👩‍👧", "word "]), max_size=400
).map("".join)


def shown(text: str, words: str) -> str:
    return Snippets(terms(words)).of(text)


@pytest.mark.parametrize(
    ("text", "indexed"),
    [
        ("plain words, 1-2", "plain words, 1-2"),
        ("Größe naïve", "Größe naïve"),
        ("v2を漢字で", "v2 を 漢 字 で "),
        ("กิน", " ก \u0e34 น "),
        ("cafe\u0301 ❤️ 葛\U000e0100城", "cafe ❤  葛  城 "),
        ("", ""),
    ],
)
def test_unspaced_characters_are_words_of_their_own(text: str, indexed: str) -> None:
    assert searchable(text) == indexed


@given(ANY)
def test_what_is_indexed_is_the_text_but_for_blanks_and_accents(text: str) -> None:
    kept = "".join(character for character in text if searchable(character))
    assert searchable(text).replace(" ", "") == kept.replace(" ", "")
    assert searchable(searchable(text)).split() == searchable(text).split()


def test_what_is_indexed_of_a_character_never_changes() -> None:
    """An index holds what this gave when a row was added; if it must change, a migration rebuilds both indexes."""
    every = "a".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    digest = hashlib.sha256(searchable(every).encode()).hexdigest()
    assert digest == "4cafc8d27e54a1e3420da6ade4b1290068f091c40c3a688c0d1b3f9dc957d3b3"


def test_every_letter_of_the_scripts_without_spaces_is_a_word_of_its_own() -> None:
    scripts = (
        "CJK UNIFIED",
        "CJK COMPAT",
        "HIRAGANA",
        "KATAKANA",
        "HANGUL",
        "THAI",
        "LAO",
        "KHMER",
        "MYANMAR",
        "BOPOMOFO",
    )
    for code in range(0x80, 0x110000):
        character = chr(code)
        if unicodedata.category(character)[0] in "LM" and unicodedata.name(character, "").startswith(scripts):
            assert searchable(f"a{character}b") == f"a {character} b"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("two  words", [("two", False), ("words", False)]),
        ("deploy* now", [("deploy", True), ("now", False)]),
        ("漢* cafe\u0301* 4*", [("漢", True), ("cafe\u0301", True), ("4", True)]),
        ("a** *a -a* a-* *", [("a**", False), ("*a", False), ("-a", True), ("a-*", False)]),
        ("! \u0301 😀 ❤️ 。", []),
    ],
)
def test_only_an_asterisk_at_the_end_of_a_word_means_something(words: str, wanted: list[tuple[str, bool]]) -> None:
    assert terms(words) == [Term(text, is_prefix) for text, is_prefix in wanted]


@pytest.mark.parametrize(
    ("words", "text", "part"),
    [
        ("cafe", "x " * 500 + "Un CAFÉ noir", "Un CAFÉ noir"),
        ("CAFÉ", "x " * 500 + "un cafe\u0301 noir", "un cafe\u0301 noir"),
        ("fé*", "xfey " * 500 + "the Fête", "the Fête"),
        ("fe", "xfe fex " * 500 + "the fe", "the fe"),
        ("京都", "東京 " * 500 + "京\n都へ", "京 都へ"),
        ("v2", "v2x " * 500 + "の部署v2版", "の部署v2版"),
        ("pre-dep*", "pre dex " * 500 + "a pre_deploy", "a pre_deploy"),
        ("b" * 100, "x " * 500 + "b" * 100, "b" * 70),
        ("İX ΣΑΣ", "x " * 500 + "the σας", "the σας"),
    ],
)
def test_the_words_around_the_first_match_are_shown(words: str, text: str, part: str) -> None:
    snippet = shown(text + " y" * 500, words)
    assert part in snippet
    assert (snippet[0], snippet[-1]) == ("…", "…")


def test_a_short_text_is_shown_whole_and_one_without_a_match_from_its_beginning() -> None:
    assert shown(" a\n b\tword ", "word") == "a b word"
    assert shown("", "word") == ""
    assert shown("x " * 500, "word") == "x " * 59 + "x…"


@given(MIXED, MIXED)
def test_a_snippet_is_a_piece_of_the_text_cut_between_characters(text: str, words: str) -> None:
    snippet = shown(text, words)
    assert len(snippet) <= SNIPPET_LENGTH + 2
    line, piece = " ".join(text.split()), snippet.removeprefix("…").removesuffix("…")
    places = [place for place in range(len(line) + 1) if line.startswith(piece, place)]
    assert any(
        not is_inside_character(line, place) and not is_inside_character(line, place + len(piece)) for place in places
    )


@pytest.mark.parametrize("unit", ["a", "a ", "é ", "ก", "กิ", "ิ", "e\u0301", "\u0301", " ", "漢", "🇩🇪", "a-"])
@pytest.mark.parametrize(
    "words", ["zebra", "a-a-a-a-b", "ก" + "ิ" * 40 + "า", "aaaab aab* ab a-b e-e-x", "漢" * 60 + "字"]
)
def test_a_long_text_of_one_shape_is_looked_through(unit: str, words: str) -> None:
    """A shape whose cost grew with its square would run into the suite's own time limit; the bench measures it."""
    assert len(shown(unit * (2**20 // len(unit)), words)) < 1_000


def test_a_match_far_into_a_text_is_shown_up_to_a_limit() -> None:
    assert "the match is" in shown("x " * (LOOKED_THROUGH // 2 - 20) + "the match is here", "match")
    assert "match" not in shown("x " * LOOKED_THROUGH + "the match is here", "match")
