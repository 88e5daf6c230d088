"""`trunkline sessions` for reading: list, show, search and stats."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from gateway.app.sessions import parse_since
from gateway.domain.errors import Refused
from gateway.domain.keys import Route
from gateway.domain.message import Kind, Mark, Message, Role, ToolCall
from gateway.domain.origins import Origin
from gateway.ports.sessions import NewSession
from tests.cli.shelf import DIRECT, FAMILY, HEADER, THREAD, Shelf


def test_a_list_for_programs_has_the_fields_of_a_header(shelf: Shelf) -> None:
    origin = Origin(kind="slack", tenant="T0", chat_id="C1", chat_name="general", thread="1.5")
    session = shelf.say(THREAD, "hello", new=NewSession(workspace="/w", origin=origin, metadata={"x": [1]}))
    (found,) = shelf.json("list")
    assert list(found) == HEADER
    assert (found["id"], found["key"], found["title"], found["message_count"]) == (
        session.id, "slack:C1:1.5", "hello", 2,
    )  # fmt: skip
    assert found["updated_at"] == "2026-11-20T13:00:00.000000+00:00"
    assert found["closed_at"] is None
    assert (found["origin"]["kind"], found["origin"]["chat_name"]) == ("slack", "general")
    assert (found["origin_label"], found["title_edited"], found["metadata"]) == ("#general · T0", False, {"x": [1]})


def test_a_list_shows_pinned_ones_first_then_the_newest_and_hides_archived_ones(shelf: Shelf) -> None:
    for route, text in ((THREAD, "first"), (DIRECT, "second"), (FAMILY, "third"), (Route("api", "1"), "fourth")):
        shelf.say(route, text)
    shelf.run("pin", "slack:C1:1.5")
    shelf.run("archive", "api:1")
    assert [line.split()[-1] for line in shelf.lines("list")] == ["TITLE", "first", "third", "second"]
    assert [one["title"] for one in shelf.json("list", "--all")] == ["first", "fourth", "third", "second"]
    assert [one["title"] for one in shelf.json("list", "--archived")] == ["fourth"]


def test_a_list_is_narrowed_by_each_filter_and_by_all_of_them(shelf: Shelf) -> None:
    shelf.say(THREAD, "thread", new=NewSession(workspace="/w", origin=Origin(kind="slack")))
    shelf.say(DIRECT, "direct", new=NewSession(origin=Origin(kind="slack")))
    shelf.say(FAMILY, "family", new=NewSession(origin=Origin(kind="telegram")))
    shelf.run("close", "slack:D1")
    shelf.run("pin", "telegram:-100")

    def titles(*filters: str) -> set[str]:
        return {one["title"] for one in shelf.json("list", *filters)}

    assert titles() == {"thread", "direct", "family"}
    assert titles("--channel", "slack") == {"thread", "direct"}
    assert titles("--origin", "telegram") == {"family"}
    assert titles("--workspace", "/w") == {"thread"}
    assert titles("--pinned") == {"family"}
    assert titles("--closed") == {"direct"}
    assert titles("--open") == {"thread", "family"}
    assert titles("--since", "2026-11-20T14:30") == {"family"}
    assert titles("--since", "2026-11-20") == {"thread", "direct", "family"}
    assert titles("--channel", "slack", "--open", "--workspace", "/w") == {"thread"}
    assert shelf.json("list", "--channel", "none") == []
    assert shelf.lines("list", "--channel", "none") == ["No sessions."]


def test_a_terminal_is_asked_for_as_a_list_calls_it(shelf: Shelf) -> None:
    shelf.say(Route("chat", "local"), "here", new=NewSession(origin=Origin(kind="console", label="terminal")))
    shelf.say(DIRECT, "there", new=NewSession(origin=Origin(kind="slack")))
    for origin in ("terminal", "console"):
        assert [one["title"] for one in shelf.json("list", "--origin", origin)] == ["here"]


def test_a_list_goes_on_where_it_says_that_there_are_more(shelf: Shelf) -> None:
    for number in range(5):
        shelf.say(Route("api", str(number)), f"text {number}")
    titles: list[str] = []
    cursor: list[str] = []
    for _ in range(3):
        code, out, err = shelf.run("list", "--limit", "2", "--json", *cursor)
        assert code == 0
        titles += [one["title"] for one in json.loads(out)]
        cursor = err.split()[-2:]
    assert titles == [f"text {number}" for number in (4, 3, 2, 1, 0)]
    assert cursor == []


def test_a_session_is_shown_with_its_kinds_marks_calls_and_senders(shelf: Shelf) -> None:
    rows = [
        Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c", name="look", arguments='{"at":"\x1b"}'),)),
        Message(role=Role.TOOL, name="look", tool_call_id="c", content="seen\n\nand done"),
        Message(role=Role.ASSISTANT, kind=Kind.NOTICE, content="a note"),
    ]
    session = shelf.say(DIRECT, "hello", rows=rows)
    shelf.act(lambda store: store.sessions.mark(session.id, [2], Mark.UNDONE))
    assert shelf.lines("show", session.id) == [
        "hello",
        f"  id        {session.id}",
        "  key       slack:D1",
        "  created   2026-11-20 12:00 UTC",
        "  updated   2026-11-20 13:00 UTC",
        "  rows      5",
        "",
        "#1  2026-11-20 13:00 UTC  user  Alice  chat",
        "    hello",
        "",
        "#2  2026-11-20 13:00 UTC  assistant  chat  [undone]",
        "    echo of hello",
        "",
        "#3  2026-11-20 13:00 UTC  assistant  chat",
        '    → look {"at":"\\x1b"}',
        "",
        "#4  2026-11-20 13:00 UTC  tool  look  chat",
        "    seen",
        "",
        "    and done",
        "",
        "#5  2026-11-20 13:00 UTC  assistant  notice",
        "    a note",
    ]
    (shown,) = shelf.json("show", session.id)
    assert list(shown) == [*HEADER, "set_aside", "rows"]
    assert [row["seq"] for row in shown["rows"]] == [1, 2, 3, 4, 5]
    assert shown["rows"][1]["marks"] == ["undone"]
    assert shown["rows"][2]["tool_calls"] == [{"id": "c", "name": "look", "arguments": '{"at":"\x1b"}'}]
    assert shown["rows"][0]["created_at"] == "2026-11-20T13:00:00.000000+00:00"


def test_rows_are_paged_from_either_end_and_the_attic_is_shown_apart(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "a", "b", "c")

    def seqs(*arguments: str) -> list[int]:
        return [row["seq"] for row in shelf.json("show", session.id, *arguments)[0]["rows"]]

    assert seqs("--limit", "2") == [5, 6]
    assert seqs("--before", "5", "--limit", "2") == [3, 4]
    assert seqs("--after", "1", "--limit", "2") == [2, 3]
    assert seqs("--limit", "0") == seqs("--attic") == []
    shelf.act(lambda store: store.sessions.retire(session.id, [1, 2], "test"))
    assert seqs() == [3, 4, 5, 6]
    assert seqs("--attic") == [1, 2]
    assert seqs("--attic", "--after", "1") == [2]
    assert [line for line in shelf.lines("show", session.id, "--attic") if line.startswith("    ")] == [
        "    a",
        "    echo of a",
    ]


def test_a_search_shows_the_words_around_its_hits_and_exits_with_1_without_one(shelf: Shelf) -> None:
    shelf.say(DIRECT, "the café opens at nine")
    shelf.say(FAMILY, "nothing of it")
    shelf.run("rename", "telegram:-100", "About the CAFÉ")
    found = shelf.json("search", "CAFÉ")
    assert list(found[0]) == [*HEADER, "seq", "snippet"]
    assert [(one["key"], one["seq"]) for one in found[:2]] == [("telegram:-100", None), ("slack:D1", 1)]
    assert "café opens" in found[1]["snippet"]
    assert len(shelf.json("search", "the", "café", "--limit", "1")) == 1
    lines = shelf.lines("search", "opens", "cafe")
    assert lines[0].split() == ["ID", "ROW", "TITLE", "FOUND"]
    assert lines[1].endswith("the café opens at nine")
    assert shelf.run("search", "unheard") == (1, "", "")
    assert shelf.run("search", "unheard", "--json") == (1, "[]\n", "")
    assert shelf.run("search", "--", "-*")[0] == 2


def test_rows_that_are_not_shown_are_told_of_with_the_way_to_them(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "a", "b", "c")
    for arguments, told in (
        ((), ""),
        (("--limit", "6"), ""),
        (("--limit", "5"), "--before 2"),
        (("--limit", "2", "--before", "5"), "--before 3"),
        (("--limit", "2", "--before", "3"), ""),
        (("--limit", "2", "--after", "0"), "--after 2"),
        (("--limit", "2", "--after", "4"), ""),
        (("--limit", "0"), ""),
    ):
        for form in ((), ("--json",)):
            code, _, err = shelf.run("show", session.id, *arguments, *form)
            assert (code, err) == (0, f"There are more: {told}\n" if told else "")
    shelf.run("clear", session.id, "--yes")
    assert shelf.run("show", session.id, "--attic", "--limit", "4")[2] == "There are more: --after 4\n"
    assert shelf.run("show", session.id, "--attic", "--limit", "2", "--after", "4")[2] == ""


def test_hits_that_are_not_shown_are_told_of(shelf: Shelf) -> None:
    for number in range(4):
        shelf.say(Route("api", str(number)), "word", new=NewSession())
        shelf.run("rename", f"api:{number}", "title")
    hits = len(shelf.json("search", "word", "--limit", "100"))
    for limit, told in ((hits - 1, f"There are more: --limit {2 * (hits - 1)}\n"), (hits, ""), (hits + 1, "")):
        for form in ((), ("--json",)):
            code, out, err = shelf.run("search", "word", "--limit", str(limit), *form)
            assert (code, err) == (0, told)
            assert out.count("api:") == (min(limit, hits) if form else 0)


def test_sessions_and_rows_are_counted_by_channel(shelf: Shelf) -> None:
    shelf.say(DIRECT, "a", "b")
    shelf.say(THREAD, "c")
    shelf.say(FAMILY, "d")
    shelf.run("close", "slack:D1")
    shelf.run("pin", "telegram:-100")
    slack, telegram = shelf.json("stats")
    assert slack == {
        "channel": "slack", "updated_at": "2026-11-20T15:00:00.000000+00:00", "sessions": 2, "open": 1, "closed": 1,
        "pinned": 0, "archived": 0, "message_count": 6,
    }  # fmt: skip
    assert (telegram["channel"], telegram["sessions"], telegram["pinned"]) == ("telegram", 1, 1)
    assert [line.split()[:2] for line in shelf.lines("stats")] == [
        ["CHANNEL", "SESSIONS"], ["slack", "2"], ["telegram", "1"], ["all", "3"],
    ]  # fmt: skip


def test_a_time_since_is_so_long_ago_or_a_date_in_utc() -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    assert parse_since("90m", now) == datetime(2026, 11, 30, 10, 30, tzinfo=UTC)
    assert parse_since("12h", now) == datetime(2026, 11, 30, tzinfo=UTC)
    assert parse_since("7d", now) == datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert parse_since("2w", now) == datetime(2026, 11, 16, 12, tzinfo=UTC)
    assert parse_since("2026-11-01", now) == datetime(2026, 11, 1, tzinfo=UTC)
    assert parse_since("2026-11-01T02:00+02:00", now) == datetime(2026, 11, 1, tzinfo=UTC)
    for text in ("", "7", "7y", "-7d", "\u0667d", "7 d", "2026-13-01"):
        with pytest.raises(Refused, match="--since"):
            parse_since(text, now)


def test_a_session_that_was_emptied_is_called_so_and_says_what_is_in_its_attic(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello")
    shelf.act(lambda store: store.sessions.open(FAMILY.key, NewSession()))
    shelf.lines("clear", "slack:D1", "--yes")
    assert [line.split("  ")[-1].strip() for line in shelf.lines("list")[1:]] == ["(cleared)", "(nothing said yet)"]
    assert "  attic     2 (show --attic)" in shelf.lines("show", "slack:D1")
    assert not any("attic" in line for line in shelf.lines("show", str(FAMILY.key)))


def test_a_workspace_is_found_with_the_slash_that_a_shell_adds(shelf: Shelf) -> None:
    shelf.say(DIRECT, "hello", new=NewSession(workspace="/srv/app"))
    assert [one["workspace"] for one in shelf.json("list", "--workspace", "/srv/app/")] == ["/srv/app"]
