"""What a message becomes on its way to Slack."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from channels.slack.render import PART_LIMIT, WORD_JOINER, neutralised, render
from channels.slack.split import split_markdown, units
from gateway.domain.outbound import Choice, Outbound
from gateway.domain.text import whole
from tests.channels.slack.conftest import calm

LIVE = re.compile(r"<(?:!(?!--|doctype|\[)|@|#)", re.IGNORECASE)


def words(text: str) -> str:
    """What a person sees of Markdown, near enough: no white space and no marks of fences."""
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize(
    "call",
    [
        "<!channel>",
        "<!here|here>",
        "<!subteam^S1|@ops>",
        "<@U1>",
        "<@W1|bob>",
        "<#C1|general>",
        "`<!channel>`",
        "```\n<@U1>\n```",
    ],
)
def test_a_text_of_the_model_calls_nobody(call: str) -> None:
    (part,) = render(Outbound(text=f"so {call} there"))
    assert not LIVE.search(part.text)
    assert part.text.replace(WORD_JOINER, "") == f"so {call} there"


@pytest.mark.parametrize(
    "call", ["&lt;!channel>", "&#60;!here>", "&#x3C;@U1>", "<\\!channel>", "\\<!channel>", "&LT;@U1>"]
)
def test_an_escape_that_markdown_undoes_calls_nobody_either(call: str) -> None:
    assert WORD_JOINER in neutralised(call)


@pytest.mark.parametrize(
    "text", ["<https://e.test|x>", "<https://e.test>", "<!-- c -->", "<!DOCTYPE html>", "List<String>", "a < b", "<b>"]
)
def test_what_calls_nobody_is_left_alone(text: str) -> None:
    assert neutralised(text) == text


@calm
@given(st.text(st.sampled_from("<&lt;#60x3cC!@\\UW1 ch-[")))
def test_no_combination_calls_anybody(text: str) -> None:
    assert not LIVE.search(neutralised(text))
    assert neutralised(text).replace(WORD_JOINER, "") == text.replace(WORD_JOINER, "")


def test_choices_are_a_numbered_list_at_the_end() -> None:
    choices = (Choice(id="y", label="Yes,\nplease"), Choice(id="n", label="<!here> No"))
    (part,) = render(Outbound(text="Which?\n", choices=choices))
    assert part.text == f"Which?\n\n1. Yes, please\n2. <{WORD_JOINER}!here> No"
    assert render(Outbound(text=" ", choices=choices[:1]))[0].text == "1. Yes, please"


def test_a_note_for_one_person_says_so() -> None:
    assert render(Outbound(text="psst", only_for="U1"))[0].details == {"markdown": True, "only_for": "U1"}
    assert render(Outbound(text="all"))[0].details == {"markdown": True}


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n"])
def test_a_blank_text_has_no_parts(text: str) -> None:
    assert list(render(Outbound(text=text))) == []


def test_a_short_text_is_one_part_as_it_was_written() -> None:
    text = "# Head\n\n- [x] done\n    - deep\n\n| a |\n|---|\n| 1 |"
    (part,) = render(Outbound(text=text))
    assert part.text == part.plain == text


def test_a_cut_is_made_between_blocks() -> None:
    paragraph = "one two three " * 300
    parts = split_markdown("\n\n".join([paragraph.strip()] * 4), 9000)
    assert [part.count("\n\n") for part in parts] == [1, 1]


def test_a_fence_that_fits_a_part_is_not_cut() -> None:
    code = "```python\n" + "x = 1\n" * 100 + "```"
    parts = split_markdown("words " * 100 + "\n\n" + code + "\n\nmore words", 900)
    assert any(code in part for part in parts)


def test_a_fence_that_is_too_long_is_closed_and_opened_again_with_its_language() -> None:
    lines = [f"line {number}" for number in range(400)]
    parts = split_markdown("````js title\n" + "\n".join(lines) + "\n````\n", 1000)
    assert len(parts) > 3
    assert all(part.startswith("````js title\n") and part.endswith("\n````") for part in parts)
    inside = [line for part in parts for line in part.split("\n")[1:-1]]
    assert inside == lines


def test_a_long_fence_inside_a_list_is_cut_as_well() -> None:
    text = "- first\n\n  ```sh\n" + "  echo hello\n" * 300 + "  ```\n- last\n"
    parts = split_markdown(text, 1000)
    assert all(units(part) <= 1000 for part in parts)
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert "\n".join(parts).count("echo hello") == 300
    assert "- last" in parts[-1]


def test_a_table_that_is_too_long_goes_on_under_its_head() -> None:
    head = "| name | value |\n|---|---|\n"
    parts = split_markdown(head + "".join(f"| row{number} | x |\n" for number in range(200)) + "\nafter", 1000)
    assert len(parts) > 2
    assert all(part.startswith(head) for part in parts[:-1])
    assert [f"row{number}" in "".join(parts) for number in range(200)] == [True] * 200
    assert parts[-1].endswith("after")


def test_a_table_with_an_absurd_head_is_cut_like_any_text() -> None:
    parts = split_markdown("| " + "head " * 300 + "|\n|---|\n" + "| row |\n" * 200, 1000)
    assert all(units(part) <= 1000 for part in parts)
    assert "".join(parts).count("row") == 200


def test_half_a_character_and_nul_are_not_sent() -> None:
    assert render(Outbound(text="a\ud83d\x00b"))[0].text == "a\ufffd\ufffdb"


def test_an_unclosed_fence_is_closed_where_it_is_cut() -> None:
    parts = split_markdown("```\n" + "code\n" * 500, 1000)
    assert all(part.startswith("```\n") and part.endswith("\n```") for part in parts)
    assert sum(part.count("code") for part in parts) == 500


def test_a_long_line_of_code_keeps_every_character() -> None:
    line = "a b  c" * 1000
    parts = split_markdown(f"```\n{line}\n```", 1000)
    assert "".join("".join(part.split("\n")[1:-1]) for part in parts) == line


def test_a_long_line_gets_no_breaks_inside_a_part() -> None:
    text = "a short beginning\n\n" + " ".join(f"{'w' * (number % 90)}" for number in range(600))
    parts = split_markdown(text, 1000)
    assert all("\n" not in part.removeprefix("a short beginning\n\n") for part in parts)


def test_a_fence_with_an_absurd_mark_or_info_is_cut_all_the_same() -> None:
    for opening, mark in (("`" * 300 + "js", "`" * 300), ("```" + "info " * 100, "```")):
        parts = split_markdown(f"{opening}\n" + "code\n" * 300 + mark, 400)
        assert all(units(part) <= 400 for part in parts)
        assert sum(part.count("code") for part in parts) == 300


def test_a_long_line_is_cut_between_words() -> None:
    parts = split_markdown("word " * 1000, 999)
    assert all(set(part.split()) == {"word"} for part in parts)


@pytest.mark.parametrize(
    "grapheme", ["👩‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "👍🏽", "❤️", "🏴\U000e0067\U000e0062\U000e007f"]
)
def test_what_is_seen_as_one_character_is_not_cut(grapheme: str) -> None:
    parts = split_markdown(grapheme * 700, 1000)
    assert len(parts) > 1
    assert "".join(parts) == grapheme * 700
    assert all(part == grapheme * (len(part) // len(grapheme)) for part in parts)


def test_a_text_that_grows_keeps_its_first_parts() -> None:
    text = "\n\n".join(f"paragraph {number} " + "word " * 50 for number in range(100))
    whole = split_markdown(text, 2000)
    for length in range(5000, len(text), 1777):
        grown = split_markdown(text[:length], 2000)
        assert grown[:-2] == whole[: len(grown) - 2]


def test_a_large_answer_is_cut_quickly_into_few_parts() -> None:
    text = "\n\n".join("some words in a row " * 20 for _ in range(500))
    parts = render(Outbound(text=text))
    assert len(parts) == -(-len(text) // PART_LIMIT)


pieces = st.sampled_from(
    ["word ", "```\n", "~~~py\n", "\n", "\n\n", "- item ", "> quote ", "| a | b |\n|---|---|\n", "# head\n",
     "    code\n", "[a]: http://x\n", "<!-- c\n", "-->\n", "👩‍👩‍👧‍👦", "e\u0301", "x" * 60, "<@U1>", "\r\n",
     "1. one\n", "\t", "***\n", "`"]
)  # fmt: skip


@settings(calm, max_examples=300)
@given(st.lists(pieces | st.text(max_size=5), max_size=120).map("".join), st.integers(40, 400))
@example("- ```\n" + "  code\n" * 40, 60)
@example("> ```x\n" + "> code\n" * 40 + "> ```\n", 60)
@example("```" + "x" * 300 + "\ncode\n```", 60)
@example("`" * 200 + "\ncode\n", 60)
def test_any_text_is_cut_within_the_limit_and_loses_no_words(text: str, limit: int) -> None:
    text = whole(text)
    parts = split_markdown(text, limit)
    assert all(part.strip() and units(part) <= limit for part in parts)
    kept = iter(words("".join(parts)))
    seen = words(text)
    missing = [character for character in re.sub(r"[`~>\-]", "", seen) if character not in kept]
    assert missing == []


@calm
@given(st.text(max_size=300))
def test_a_text_without_markup_is_only_cut(text: str) -> None:
    plain = re.sub(r"[^\w ]", "", text)
    assert words("".join(split_markdown(plain * 5, 50))) == words(plain * 5)


sentences = st.sampled_from(["word " * 30, "a short one", "# head", "> said\n> more", "- a\n- b", "*soft* `code`"])
codes = st.builds(
    lambda indent, mark, lines: "\n".join(
        f"{indent if number else indent.replace(' ', '-', 1)}{line}"
        for number, line in enumerate([f"{mark}py", *["some code"] * lines, mark])
    ),
    st.sampled_from(["", "  "]),
    st.sampled_from(["```", "~~~~"]),
    st.integers(0, 60),
)


@settings(calm, max_examples=150)
@given(st.lists(sentences | codes, min_size=1, max_size=8), st.integers(80, 500))
def test_no_part_ends_inside_code(blocks: list[str], limit: int) -> None:
    text = "\n\n".join(blocks)
    parts = split_markdown(text, limit)
    assert all(units(part) <= limit for part in parts)
    for part in parts:
        fences = [token for token in MarkdownIt("commonmark").parse(part) if token.type == "fence"]
        last = [part.split("\n")[token.map[1] - 1].strip() for token in fences if token.map]
        assert last == [token.markup for token in fences]
    assert "".join(parts).count("some code") == text.count("some code")
