"""`trunkline sessions show` of turns that were set aside."""

from __future__ import annotations

from dataclasses import replace

from gateway.domain.message import MediaRef
from tests.cli.setting_aside import set_aside
from tests.cli.shelf import DIRECT, Shelf
from tests.stores import message


def test_a_turn_that_was_set_aside_is_shown_with_when_its_reference_and_its_first_words(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    turn = set_aside(shelf, message("look at this\n\x1b]0;and at that", 1), message("please", 2))
    lines = shelf.lines("show", "slack:D1")
    when = f"{turn.started_at:%Y-%m-%d %H:%M} UTC"
    header = f"  set aside {when}, reference {turn.id[:8]}: look at this \\x1b]0;and at that please"
    assert header in lines[: lines.index("")]
    (shown,) = shelf.json("show", "slack:D1")
    assert shown["set_aside"] == [
        {
            "begun_at": turn.started_at.isoformat(timespec="microseconds"),
            "reference": turn.id[:8],
            "words": "look at this \\x1b]0;and at that please",
        }
    ]


def test_its_rows_are_marked_where_they_are_listed_and_others_are_not(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    set_aside(shelf, message("look", 1))
    heads = [line for line in shelf.lines("show", "slack:D1") if line.startswith("#")]
    assert [head.partition("chat")[2] for head in heads] == ["", "", "  [set aside]"]
    assert [row["marks"] for row in shelf.json("show", "slack:D1")[0]["rows"]] == [[], [], ["set aside"]]


def test_the_newest_is_first_and_long_words_are_cut_between_characters(shelf: Shelf) -> None:
    set_aside(shelf, message("first", 1))
    shelf.say(DIRECT, "meanwhile")
    set_aside(shelf, message("e\u0301" * 40, 2))
    (shown,) = shelf.json("show", "slack:D1")
    assert [turn["words"] for turn in shown["set_aside"]] == ["e\u0301" * 29 + "…", "first"]


def test_a_picture_without_words_is_named(shelf: Shelf) -> None:
    files = (MediaRef(ref="F1", kind="image", name="odd.png"), MediaRef(ref="F2", kind="file"))
    set_aside(shelf, replace(message("", 1), media=files))
    assert shelf.json("show", "slack:D1")[0]["set_aside"][0]["words"] == "[image odd.png] [file]"


def test_its_words_are_found_in_the_attic_too(shelf: Shelf) -> None:
    set_aside(shelf, message("look", 1))
    shelf.run("clear", "slack:D1", "--yes")
    (shown,) = shelf.json("show", "slack:D1")
    assert (shown["rows"], [turn["words"] for turn in shown["set_aside"]]) == ([], ["look"])


def test_where_none_was_nothing_is_said_of_it(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    assert not any("set aside" in line for line in shelf.lines("show", "slack:D1"))
    assert shelf.json("show", "slack:D1")[0]["set_aside"] == []
