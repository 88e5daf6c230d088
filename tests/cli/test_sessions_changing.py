"""`trunkline sessions` for changing a session, and how one is named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gateway.domain.keys import Route
from gateway.ports.sessions import NewSession
from tests.acceptance.gateway import command
from tests.acceptance.terminal import on_a_terminal
from tests.cli.shelf import DIRECT, EVERY_COMMAND, FAMILY, HEADER, THREAD, Shelf
from tests.stores import message


def test_a_session_is_named_by_its_id_its_beginning_or_its_key(shelf: Shelf) -> None:
    direct, family = (shelf.say(route, "hello").id for route in (DIRECT, FAMILY))
    assert shelf.json("show", direct)[0]["key"] == "slack:D1"
    assert shelf.json("show", "telegram:-100")[0]["id"] == family
    code, out, err = shelf.run("show", "session-")
    assert (code, out) == (2, "")
    assert f"{direct} (slack:D1)" in err
    assert f"{family} (telegram:-100)" in err
    for route in (Route("api", str(number)) for number in range(5)):
        shelf.say(route, "hello")
    named = re.findall(r"session-\d+", shelf.run("show", "session-")[2])
    assert len(set(named)) == len(named) == 5
    assert shelf.run("show", "session-")[2].endswith("and more")


def test_a_text_that_is_no_ref_is_told_what_one_is_and_how_to_find_it(shelf: Shelf) -> None:
    shelf.say(Route("chat-kk", "local"), "the trip to Norway")
    shelf.say(Route("chat-old-one", "local"), "hello")
    shelf.run("archive", "chat-old-one:local")
    for ref, code, way in (
        ("trip", 2, "`trunkline sessions search trip`"),
        ("the trip", 1, "`trunkline sessions search 'the trip'`"),
        ("it's", 2, """`trunkline sessions search 'it'"'"'s'`"""),
        ("chat-kk", 1, "`trunkline sessions list --channel chat-kk`"),
        ("chat-old-one", 1, "`trunkline sessions search chat-old-one`"),
        ("***", 2, "`trunkline sessions search WORDS`"),
        ("a\nb", 2, "`trunkline sessions search WORDS`"),
        ("", 2, "`trunkline sessions search WORDS`"),
    ):
        shown, out, err = shelf.run("show", ref)
        assert (shown, out) == (code, "")
        assert way in err
        assert "channel:chat" in err
    assert "the first 6 or more characters" in shelf.run("show", "trip")[2]


def test_the_first_characters_of_an_id_suffice(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello")
    for length in (6, 7, len(session.id)):
        assert shelf.json("show", session.id[:length])[0]["id"] == session.id


@pytest.mark.parametrize("ref", ["slack:nobody", "no-such-id", "%_%_%_%_"])
def test_a_session_that_is_not_there_exits_with_1(shelf: Shelf, ref: str) -> None:
    shelf.say(DIRECT, "hello")
    for arguments in EVERY_COMMAND:
        if "slack:D1" in arguments:
            code, out, err = shelf.run(*(ref if argument == "slack:D1" else argument for argument in arguments))
            assert (code, out) == (1, "")
            assert err.startswith("trunkline: no session")
            assert err.count("\n") == 1


def test_a_key_means_the_open_session_and_a_closed_one_is_named_by_its_id(shelf: Shelf) -> None:
    old = shelf.say(DIRECT, "old")
    assert shelf.json("close", "slack:D1")[0]["closed_at"] is not None
    code, _, err = shelf.run("show", "slack:D1")
    assert code == 1
    assert "closed is named by its id" in err
    assert shelf.run("close", old.id)[0] == 2
    shelf.say(DIRECT, "new")
    assert shelf.json("show", "slack:D1")[0]["title"] == "new"
    assert shelf.json("show", old.id)[0]["title"] == "old"


def test_a_title_of_ones_own_stays(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello")
    assert shelf.lines("rename", "slack:D1", "My   title") == [f"Renamed: My title (slack:D1, {session.id})"]
    shelf.say(DIRECT, "again")
    (found,) = shelf.json("list")
    assert (found["title"], found["title_edited"]) == ("My title", True)


def test_a_title_that_is_shortened_is_said_to_be(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    for length, told in ((120, ""), (121, "The title was shortened to 120 characters.\n")):
        code, out, err = shelf.run("rename", "slack:D1", f"  {'x' * length}  ", "--json")
        assert (code, json.loads(out)[0]["title"], err) == (0, "x" * 120, told)


def test_pinning_and_archiving_are_taken_back(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    for name, field in (("pin", "pinned"), ("archive", "archived")):
        assert shelf.json(name, "slack:D1")[0][field] is True
        assert field in shelf.lines("list", "--all")[1]
        assert shelf.json(name, "slack:D1", "--off")[0][field] is False
        assert field not in shelf.lines("list", "--all")[1]


def test_a_fork_has_what_came_before_a_message_and_its_key_must_be_free(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "a", "b", "c")
    (made,) = shelf.json("fork", "slack:D1", "api:copy", "--before-user", "1")
    assert (made["key"], made["parent_id"], made["message_count"]) == ("api:copy", session.id, 2)
    assert shelf.json("fork", "slack:D1", "api:all", "--before-user", "3")[0]["message_count"] == 6
    assert "without an open session" in shelf.run("fork", "slack:D1", "api:copy", "--before-user", "1")[2]
    assert "from 0 to 3, got 4" in shelf.run("fork", "slack:D1", "api:x", "--before-user", "4")[2]
    assert "channel:chat_id" in shelf.run("fork", "slack:D1", "nonsense", "--before-user", "1")[2]


def test_a_session_is_cleared_into_its_attic_and_only_with_a_yes(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello")
    code, out, err = shelf.run("clear", "slack:D1")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert shelf.json("list")[0]["message_count"] == 2
    assert shelf.lines("clear", "slack:D1", "--yes") == [f"Cleared (rows: 2): hello (slack:D1, {session.id})"]
    assert shelf.json("show", session.id)[0]["rows"] == []
    assert [row["content"] for row in shelf.json("show", session.id, "--attic")[0]["rows"]] == [
        "hello",
        "echo of hello",
    ]
    assert shelf.run("search", "hello")[0] == 1
    shelf.say(DIRECT, "anew")
    (cleared,) = shelf.json("clear", "slack:D1", "--yes")
    assert list(cleared) == [*HEADER, "moved"]
    assert (cleared["id"], cleared["message_count"], cleared["moved"]) == (session.id, 0, 2)
    assert shelf.json("clear", "slack:D1", "--yes")[0]["moved"] == 0


def test_a_session_is_erased_only_with_a_yes(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello")
    code, out, err = shelf.run("delete", "slack:D1")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert len(shelf.json("list")) == 1
    assert shelf.json("delete", session.id, "--yes")[0]["title"] == "hello"
    assert shelf.json("list") == []
    assert shelf.run("delete", session.id, "--yes")[0] == 1
    assert shelf.run("search", "hello")[0] == 1


async def test_a_person_at_a_terminal_is_asked_before_rows_go(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="keep me?")
    questions = {
        "clear": "Clear keep me? (chat:local, rows: 2), so that the bot remembers none of it? [y/N]",
        "delete": "Erase {} (chat:local, rows: {}) for good? [y/N]",
    }
    for name, answer, code, question in (
        ("clear", "n", 1, questions["clear"]),
        ("delete", "n", 1, questions["delete"].format("keep me?", 2)),
        ("clear", "y", 0, questions["clear"]),
        ("delete", "y", 0, questions["delete"].format("(cleared)", 0)),
    ):
        async with on_a_terminal("sessions", name, "chat:local", "--data", str(tmp_path)) as terminal:
            await terminal.shows(question)
            terminal.press(f"{answer}\r")
            assert await terminal.ended() == code
    assert await command("sessions", "list", "--data", str(tmp_path)) == (0, "No sessions.\n", "")


def test_a_chat_goes_on_with_a_session_that_is_attached_to_it(shelf: Shelf) -> None:
    old = shelf.say(DIRECT, "long ago").id
    shelf.lines("close", "slack:D1")
    new = shelf.say(DIRECT, "now").id
    code, _, err = shelf.run("attach", old, "slack:D1")
    assert (code, new in err, "--close" in err) == (2, True, True)
    told = shelf.lines("attach", old, "slack:D1", "--close")
    assert told[0].startswith("Attached: ")
    assert told[1:] == [f"  closed for it: now ({new})"]
    assert shelf.json("show", "slack:D1")[0]["id"] == old
    assert shelf.json("attach", new, "slack:D1", "--close")[0]["closed"] == old


def test_it_is_told_from_which_chat_a_session_was_taken(shelf: Shelf) -> None:
    taken = shelf.say(DIRECT, "hello").id
    assert shelf.lines("attach", taken, "telegram:42")[1:] == ["  was slack:D1"]
    assert shelf.json("attach", taken, "slack:D1")[0]["was"] == "telegram:42"


def test_a_chat_keeps_its_session_where_the_other_one_cannot_be_attached(shelf: Shelf) -> None:
    here = shelf.say(DIRECT, "here").id
    shelf.act(lambda store: store.turns.accept(message("waits", 900, route=THREAD), NewSession()))
    (busy,) = [one["id"] for one in shelf.json("list") if one["key"] == str(THREAD.key)]
    assert busy != here
    code, _, err = shelf.run("attach", busy, "slack:D1", "--close")
    assert (code, "which is answering" in err) == (2, True)
    assert shelf.json("show", "slack:D1")[0]["id"] == here


def test_a_chat_of_a_channel_that_is_not_configured_is_told_of(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello").id
    code, _, err = shelf.run("attach", session, "slck:D1")
    assert (code, "No channel named slck is configured here" in err) == (0, True)
    assert shelf.run("attach", session, "console:local")[2] == ""


def test_a_session_without_a_chat_is_attached_to_one(shelf: Shelf) -> None:
    lost = shelf.say(Route("openworker", "abc"), "hello").id
    assert shelf.lines("attach", lost, "telegram:42:7")[0].endswith(f"(telegram:42:7, {lost})")
