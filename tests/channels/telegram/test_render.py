"""What people read in Telegram: nothing lost, nothing too long, nothing that Telegram could refuse."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channels.telegram import render as module
from channels.telegram.render import formatted, render
from channels.telegram.split import LONGEST, MOST_ENTITIES
from gateway.domain.outbound import Choice, Outbound, Part
from gateway.domain.text import whole
from tests.loopback.telegram_rules import check_entities, check_text, utf16_length

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
CJK_B = "𠀀"


def parts_of(text: str) -> list[Part]:
    return list(render(Outbound(text=text)))


def shown(text: str) -> str:
    return "\n".join(part.text for part in parts_of(text))


def without_space(text: str) -> str:
    return "".join(text.split())


def entities_of(text: str) -> list[tuple[str, str]]:
    """Return each entity as its type and the words it covers."""
    (part,) = parts_of(text)
    units = part.text.encode("utf-16-le")
    return [
        (one["type"], units[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
        for one in part.details.get("entities", [])
    ]


def assert_telegram_takes(parts: list[Part]) -> None:
    for part in parts:
        check_text(part.text)
        check_entities(part.text, part.details.get("entities", []))
        assert part.plain == part.text


@pytest.mark.parametrize(
    "text",
    [
        "`",
        "[x",
        "http://a.b/one_two_three_four",
        "https://e.test/a_b_c and https://e.test/?d_e=f_g",
        "snake_case and other_snake_case",
        "/usr/local_lib/my_file_name.txt",
        "List<String>",
        "a <b and c> d",
        "<div>raw</div>",
        "<br>",
        "<!-- a comment -->",
        "a || b || c",
        "cost $5 and $HOME/bin:$PATH, $x^2$",
        "2 * 3 * 4",
        "see [1]: it is here",
        "\ue000 private \ue001",
        "==high== ^a^ ~b~ :smile:",
    ],
)
def test_a_text_without_markup_is_shown_as_it_is_written(text: str) -> None:
    assert shown(text) == text


@pytest.mark.parametrize(
    ("text", "visible", "entities"),
    [
        ("**a_b**", "a_b", [("bold", "a_b")]),
        ("# Head\ntext", "Head\ntext", [("underline", "Head"), ("bold", "Head")]),
        ("`List<String>`", "List<String>", [("code", "List<String>")]),
        ("[site](https://e.test/a_(b))", "site", [("text_link", "site")]),
        ("> quoted", "quoted", [("blockquote", "quoted")]),
        ("- a\n  - b\n- c", "• a\n  • b\n• c", []),
        ("- [ ] open\n- [x] done", "☐ open\n☑ done", []),
        ("👍 **bold** 👍", "👍 bold 👍", [("bold", "bold")]),
        ("[ping](tg://user?id=1)", "ping", []),
        ("```py title=x\nif a < b:\n    pass\n```", "if a < b:\n    pass", [("pre", "if a < b:\n    pass")]),
    ],
)
def test_markup_becomes_entities(text: str, visible: str, entities: list[tuple[str, str]]) -> None:
    assert shown(text).rstrip("\n") == visible
    assert entities_of(text) == entities


def test_the_address_of_a_link_and_the_language_of_code_go_with_the_entity() -> None:
    (part,) = parts_of("[a](https://e.test/x_y?a=$1) `b`\n\n```python\nc\n```")
    link, _, code = part.details["entities"]
    assert link["url"] == "https://e.test/x_y?a=$1"
    assert code["language"] == "python"


def test_headings_lists_quotes_tables_and_html_keep_all_their_words() -> None:
    text = (
        "<h1>Title</h1>\n\n## Sub\n\n<p>para</p>\n\n<ul><li>one</li></ul>\n\n> quote\n\n"
        "| name | value |\n|---|---|\n| a | 1 |\n| b |  |\n| c\\|d | 3 |\n\n<div class='x'>raw</div>"
    )
    seen = shown(text)
    for word in [
        "<h1>Title</h1>",
        "Sub",
        "<p>para</p>",
        "<li>one</li>",
        "quote",
        "name",
        "value",
        "c|d",
        "<div class='x'>",
    ]:
        assert word in seen
    assert_telegram_takes(parts_of(text))


def test_footnotes_and_unused_link_definitions_are_not_swallowed() -> None:
    assert shown("fact[^1]\n\n[^1]: the note") == "fact[^1]\n\n[^1]: the note"
    assert shown("Sources\n\n[1]: https://e.test/a") == "Sources\n\n[1]: https://e.test/a"


def test_a_used_link_definition_is_a_link() -> None:
    assert entities_of("See [docs].\n\n[docs]: https://e.test") == [("text_link", "docs")]


def test_choices_are_numbered_below_and_never_read_as_markup() -> None:
    choices = (Choice(id="a", label="_Yes_ <now>"), Choice(id="b", label="No"))
    (part,) = render(Outbound(text="Go on?", choices=choices))
    assert part.text == "Go on?\n\n1. _Yes_ <now>\n2. No"
    assert not part.details


@pytest.mark.parametrize("text", ["", " ", "\n\t\n"])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert parts_of(text) == []


@pytest.mark.parametrize("text", [">", "[](x)", "``\n``", "[]()"])
def test_a_text_that_converts_to_nothing_is_shown_plain(text: str) -> None:
    (part,) = parts_of(text)
    assert part == Part(text=text, plain=text)


def test_a_text_over_which_the_converter_stumbles_is_shown_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object, **__: object) -> None:
        raise IndexError

    monkeypatch.setattr(module, "convert", stumble)
    assert parts_of("**all** of it") == [Part(text="**all** of it", plain="**all** of it")]


def test_half_a_surrogate_pair_does_not_reach_the_wire() -> None:
    assert shown("a \ud83d b") == "a \ufffd b"


@pytest.mark.parametrize(
    "unit",
    ["😀", FAMILY, FLAG, CJK_B, "漢", "👍🏽", "e\u0301"],
    ids=["emoji", "family", "flag", "cjk-b", "cjk", "tone", "accent"],
)
def test_2100_characters_beyond_ascii_are_cut_between_characters(unit: str) -> None:
    """Case G7."""
    parts = parts_of(unit * 2100)
    assert "".join(part.text for part in parts) == unit * 2100
    assert all(part.text == unit * (len(part.text) // len(unit)) for part in parts)
    assert_telegram_takes(parts)


def test_10000_characters_without_a_space_come_in_order() -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(10_000))
    parts = parts_of(text)
    assert [len(part.text) for part in parts] == [4096, 4096, 1808]
    assert "".join(part.text for part in parts) == text


def test_a_long_text_is_cut_at_line_breaks_and_then_at_spaces() -> None:
    lines = "\n".join(f"line {index} " + "x" * 90 for index in range(100))
    assert all(re.match(r"line \d", part.text) and part.text.endswith("x") for part in parts_of(lines))
    words = " ".join(["word"] * 3000)
    assert all(part.text.startswith("word") and part.text.endswith("word") for part in parts_of(words))


def test_a_code_block_over_several_parts_stays_code_and_keeps_its_indentation() -> None:
    code = "\n".join(f"    x = {index}  # {'y' * 60}" for index in range(150))
    parts = parts_of(f"```python\n{code}\n```")
    assert len(parts) > 2
    for part in parts:
        (entity,) = part.details["entities"]
        assert (entity["type"], entity["offset"], entity["language"]) == ("pre", 0, "python")
        assert part.text.startswith("    x")
    assert_telegram_takes(parts)


def test_a_growing_text_keeps_its_earlier_parts() -> None:
    text = "".join(f"Sentence number {index} is **here**.\n" for index in range(600))
    whole = parts_of(text)
    for length in range(9000, len(text), 1500):
        grown = parts_of(text[:length])
        assert grown[:-1] == whole[: len(grown) - 1]


def test_more_entities_than_telegram_takes_lose_emphasis_before_links() -> None:
    (part,) = parts_of(" ".join(["**b**"] * 150) + " [l](https://e.test)")
    kept = part.details["entities"]
    assert len(kept) == MOST_ENTITIES
    assert kept[-1]["type"] == "text_link"


def test_rendering_is_the_same_each_time() -> None:
    assert parts_of("**a** b") == parts_of("**a** b")


MARKUP = st.text(
    st.one_of(st.sampled_from("*_`~|<>[]()#-+$^\\! \n\t:/=&;1a"), st.characters(codec="utf-16")), max_size=200
)
LONG = st.builds(
    lambda unit, count: unit * count,
    st.text(st.characters(codec="utf-16"), min_size=1, max_size=12),
    st.integers(1, 3000),
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(MARKUP, LONG))
def test_any_text_becomes_parts_that_telegram_takes(text: str) -> None:
    parts = parts_of(text)
    assert bool(parts) == bool(text.strip())
    assert_telegram_takes(parts)


@settings(max_examples=150, deadline=None)
@given(st.one_of(MARKUP, LONG))
def test_parts_join_to_the_converted_text(text: str) -> None:
    converted, _ = formatted(whole(text))
    parts = parts_of(text)
    assert without_space("".join(part.text for part in parts)) == without_space(converted)
    assert all(utf16_length(part.text) <= LONGEST and part.text.strip() for part in parts)


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab<>$|{}?!,;'\" \n"), max_size=300))
def test_characters_that_are_no_markdown_are_never_lost(text: str) -> None:
    # Quote marks at the start of a line are Markdown.
    text = re.sub(r"^[ >]+", "", text, flags=re.MULTILINE)
    assert without_space(shown(text)) == without_space(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([FAMILY, FLAG, "👍🏽", CJK_B, "a", "é", " "]), min_size=500, max_size=1500))
def test_no_cut_goes_through_a_character_as_people_see_it(clusters: list[str]) -> None:
    for part in parts_of("".join(clusters)):
        first, last = part.text[0], part.text[-1]
        assert first != "\u200d"
        assert last != "\u200d"
        assert not unicodedata.category(first).startswith("M")
        assert not "\U0001f3fb" <= first <= "\U0001f3ff"


@pytest.mark.parametrize(
    "text", ["- " * 2000 + "x", "1. " * 2000 + "x", "> " * 2000 + "x", "```\n" * 5000, "-\t" * 500 + "x"]
)
def test_a_small_text_never_becomes_hundreds_of_messages(text: str) -> None:
    parts = render(Outbound(text=text))
    assert sum(len(part.text) for part in parts) <= 2 * len(text)
    assert len(parts) <= 2 + len(text) // 2000


def test_a_line_of_dashes_is_still_a_rule_and_a_nested_list_a_list() -> None:
    assert "12" in shown("- a\n  - b\n    - c\n\n12\n")
    assert shown("-----------------")


def test_a_paragraph_that_fits_is_not_cut_for_one_that_does_not() -> None:
    paragraph = "word " * 700
    first, second = render(Outbound(text=f"{paragraph.strip()}\n\n{paragraph.strip()}"))
    assert first.text == second.text == paragraph.strip()
