"""`trunkline sessions` as a person and a script use it, and the page that explains it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from typer.testing import CliRunner

from gateway.app.sessions import parse_since
from gateway.cli import tables
from gateway.cli.sessions import sessions
from gateway.domain.errors import Refused, TrunklineError
from gateway.domain.keys import Route, SessionKey
from gateway.domain.message import Kind, Mark, Message, Role, ToolCall
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.ports.leases import session_lease
from gateway.ports.sessions import NewSession
from gateway.store import Store, open_store
from tests.acceptance.gateway import REPOSITORY, TRUNKLINE, Gateway, command, environment
from tests.acceptance.terminal import on_a_terminal
from tests.clock import ManualClock
from tests.stores import count_words, id_maker, message

T = TypeVar("T")
PAGE = (REPOSITORY / "docs" / "sessions.md").read_text(encoding="utf-8")
HEADER = [
    "id", "key", "workspace", "agent", "model", "mode", "title", "title_edited", "preview", "message_count",
    "created_at", "updated_at", "closed_at", "extra_roots", "grants", "pinned", "archived", "origin", "origin_label",
    "parent_id", "consolidated_through", "replay_from", "compaction", "metadata",
]  # fmt: skip
THREAD = Route("slack", "C1", "1.5")
DIRECT = Route("slack", "D1")
FAMILY = Route("telegram", "-100")
EVERY_COMMAND = (
    ["list"], ["show", "slack:D1"], ["search", "word"], ["rename", "slack:D1", "Title"], ["pin", "slack:D1"],
    ["archive", "slack:D1"], ["close", "slack:D1"], ["fork", "slack:D1", "slack:D2", "--before-user", "0"],
    ["delete", "slack:D1", "--yes"], ["stats"],
)  # fmt: skip


class Shelf:
    """A store that commands are run on, here in this process, and that is filled between them."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.clock = ManualClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
        self._make_id = id_maker("session-")
        self._numbers = iter(range(1_000_000))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, output and errors, as the process would have them."""
        result = CliRunner().invoke(sessions, [*arguments, "--data", str(self.data)])
        if isinstance(result.exception, TrunklineError):
            return 2, result.stdout, f"{result.stderr}{result.exception}"
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout, result.stderr

    def lines(self, *arguments: str) -> list[str]:
        """Return what a command that succeeds prints."""
        code, out, err = self.run(*arguments)
        assert (code, err) == (0, "")
        return out.splitlines()

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects a command that succeeds prints."""
        code, out, _ = self.run(*arguments, "--json")
        assert code == 0
        found = json.loads(out)
        assert isinstance(found, list)
        return found

    def say(self, route: Route, *texts: str, rows: Sequence[Message] = (), new: NewSession | None = None) -> Session:
        """Store a turn a text, an hour apart, each answered by an echo; `rows` end the last one."""
        return self.act(lambda store: self._say(store, route, texts, rows, new or NewSession()))

    def act(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Do something to the store."""

        async def body() -> T:
            url = f"sqlite:///{self.data / 'trunkline.db'}"
            async with open_store(url, clock=self.clock, make_id=self._make_id, count=count_words) as store:
                return await work(store)

        return asyncio.run(body())

    async def _say(
        self, store: Store, route: Route, texts: Sequence[str], rows: Sequence[Message], new: NewSession
    ) -> Session:
        await store.sessions.open(route.key, new)
        for place, text in enumerate(texts, start=1):
            await self.clock.advance(3600)
            said = message(text, next(self._numbers), route=route, at=self.clock.now())
            session_id = await store.turns.accept(said, new)
            assert session_id is not None
            lease = await store.leases.acquire(session_lease(session_id), "test", timedelta(seconds=30))
            assert lease is not None
            turn = await store.turns.begin(session_id, lease)
            assert turn is not None
            answers = [Message(role=Role.ASSISTANT, content=f"echo of {text}")]
            await store.turns.finish(turn, lease, [*answers, *(rows if place == len(texts) else ())], [], None)
            await store.leases.release(lease)
        return await store.sessions.get(route.key)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


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


def test_columns_are_aligned_whatever_is_written_in_them(shelf: Shelf) -> None:
    titles = ("plain", "世界 wide", "e\u0301 accent", "👨‍👩‍👧‍👦 family", "❤️ heart", "🇩🇪 flag", "क्षि")
    for number, title in enumerate(titles):
        origin = Origin(kind="api", label=title)
        shelf.say(Route("api", str(number)), "end", new=NewSession(origin=origin))
    lines = shelf.lines("list")
    assert len(lines) == 1 + len(titles)
    assert len({tables.width(line[: line.rindex("end")]) for line in lines[1:]}) == 1
    assert len({line.index("api:") for line in lines[1:]}) == 1


def test_a_width_is_what_a_terminal_makes_of_a_text() -> None:
    texts = ("abc", "世界", "e\u0301", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "❤️", "ｱ", "\u200b")
    assert [tables.width(text) for text in texts] == [3, 4, 1, 2, 4, 2, 2, 1, 0]
    assert [tables.clipped("世界 wide", most) for most in (9, 6, 4)] == ["世界 wide", "世界…", "世…"]
    assert tables.clipped("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 5) == "👨‍👩‍👧‍👦👨‍👩‍👧‍👦…"


def test_nothing_that_was_said_can_drive_the_terminal(shelf: Shelf) -> None:
    nasty = "\x1b]0;owned\x07 \x9b31m \u202egnp\u2066 a\tb\r\n#9  2026-01-01  assistant\rover"
    session = shelf.say(DIRECT, nasty, new=NewSession(origin=Origin(kind="api", label=f"from {nasty}")))
    shelf.run("rename", session.id, f"title {nasty}")
    for arguments in (["list"], ["show", "slack:D1"], ["search", "owned"], ["pin", "slack:D1"], ["list", "--json"]):
        code, out, err = shelf.run(*arguments)
        assert (code, err) == (0, "")
        assert not re.search(r"[^\n\t -~\u00a0-\uffff]|[\u202a-\u202e\u2066-\u2069\x80-\x9f]", out)
    assert len(shelf.lines("list")) == 2
    assert not any(line.startswith("#9") for line in shelf.lines("show", "slack:D1"))
    assert shelf.json("show", "slack:D1")[0]["rows"][0]["content"] == nasty


def test_a_session_is_named_by_its_id_its_beginning_or_its_key(shelf: Shelf) -> None:
    direct, family = (shelf.say(route, "hello").id for route in (DIRECT, FAMILY))
    assert shelf.json("show", direct)[0]["key"] == "slack:D1"
    assert shelf.json("show", "telegram:-100")[0]["id"] == family
    code, out, err = shelf.run("show", "session-")
    assert (code, out) == (2, "")
    assert f"{direct} (slack:D1)" in err
    assert f"{family} (telegram:-100)" in err
    assert shelf.run("show", "sessi") == (2, "", "expected a key, an id, or the first 6 characters of one, got 'sessi'")


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
    assert list(shown) == [*HEADER, "rows"]
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


def test_a_title_of_ones_own_stays(shelf: Shelf) -> None:
    session = shelf.say(DIRECT, "hello")
    assert shelf.lines("rename", "slack:D1", "My   title") == [f"Renamed: My title (slack:D1, {session.id})"]
    shelf.say(DIRECT, "again")
    (found,) = shelf.json("list")
    assert (found["title"], found["title_edited"]) == ("My title", True)


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


async def test_a_person_at_a_terminal_is_asked_before_a_session_is_erased(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="keep me?")
    for answer, code in (("n", 1), ("y", 0)):
        async with on_a_terminal("sessions", "delete", "chat:local", "--data", str(tmp_path)) as terminal:
            await terminal.shows("Erase keep me? (chat:local, rows: 2) for good? [y/N]")
            terminal.press(f"{answer}\r")
            assert await terminal.ended() == code
    assert await command("sessions", "list", "--data", str(tmp_path)) == (0, "No sessions.\n", "")


async def test_lines_fit_a_terminal(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="世界 " * 40)
    async with on_a_terminal("sessions", "list", "--data", str(tmp_path)) as terminal:
        assert await terminal.ended() == 0
        await terminal.shows("…")
        lines = terminal.text.splitlines()
    assert lines[0].split() == ["ID", "UPDATED", "ROWS", "STATE", "KEY", "TITLE"]
    assert max(map(tables.width, lines)) <= 80


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list", "--limit", "0"], "--limit: expected a number from 1"),
        (["list", "--limit", "many"], "--limit"),
        (["list", "--since", "yesterday"], "--since: expected"),
        (["list", "--since", "999999w"], "--since: expected"),
        (["list", "--since", "0001-01-01T00:00+14:00"], "--since: expected"),
        (["list", "--cursor", "x"], "'x'"),
        (["list", "--cursor", "0.99999999999999999999999.x"], "cursor"),
        (["list", "--all", "--archived"], "got both"),
        (["list", "--nonsense"], "--nonsense"),
        (["show"], "ref"),
        (["show", "Slack:D1"], "channel name"),
        (["show", "slack:D1", "--before", "1", "--after", "1"], "got both"),
        (["show", "slack:D1", "--before", "1", "--attic"], "got both"),
        (["show", "slack:D1", "--before", "99999999999999999999"], "a row: expected"),
        (["rename", "slack:D1", " \n"], "expected a title"),
        (["search", "***"], "at least one word"),
        (["fork", "slack:D1", "slack:D2", "--before-user", "-1"], "from 0 to 1"),
        (["nonsense"], "nonsense"),
    ],
)
def test_what_is_asked_wrongly_is_told_in_one_sentence(shelf: Shelf, arguments: list[str], words: str) -> None:
    shelf.say(DIRECT, "hello")
    code, out, err = shelf.run(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert "\n" not in err


async def test_a_wrong_command_ends_the_process_with_2_and_no_traceback(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="hi")
    for arguments in (["list", "--since", "x"], ["list", "--limit", "x"], ["show", "abc"], ["delete", "chat:local"]):
        code, out, err = await command("sessions", *arguments, "--data", str(tmp_path))
        assert (code, out) == (2, "")
        assert re.fullmatch(r"trunkline: [^\n]+\n", err)


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=lambda arguments: arguments[0])
def test_a_database_that_is_not_there_is_told_and_not_made(tmp_path: Path, arguments: list[str]) -> None:
    data = tmp_path / "nowhere"
    code, out, err = Shelf(data).run(*arguments)
    assert (code, out) == (2, "")
    assert f"there is no database at {data / 'trunkline.db'}" in err
    assert not data.exists()


async def test_an_empty_file_is_no_database_either(tmp_path: Path) -> None:
    database = tmp_path / "trunkline.db"
    database.touch()
    code, out, err = await command("sessions", "list", "--data", str(tmp_path))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"trunkline: there is no database at [^\n]+\n", err)
    assert not database.with_name("trunkline.db-wal").exists()
    assert database.stat().st_size == 0
    database.write_text("something else altogether\n" * 100)
    code, out, err = await command("sessions", "list", "--data", str(tmp_path))
    assert (code, out) == (2, "")
    assert "expected a Trunkline database" in err


async def test_the_configuration_says_where_the_store_is(tmp_path: Path) -> None:
    config = tmp_path / "other.toml"
    config.write_text(f'[store]\nurl = "sqlite:///{tmp_path / "else.db"}"\n')
    chosen = ("--config", str(config), "--data", str(tmp_path / "data"))
    await command("chat", *chosen, stdin="hi")
    code, out, _ = await command("sessions", "list", "--json", *chosen)
    assert (code, [one["key"] for one in json.loads(out)]) == (0, ["chat:local"])


async def test_every_command_works_beside_a_running_gateway(tmp_path: Path) -> None:
    async with Gateway(tmp_path, "") as gateway:
        data = ("--data", str(gateway.data))

        async def ran(*arguments: str) -> list[dict[str, Any]]:
            code, out, err = await command("sessions", *arguments, "--json", *data)
            assert (code, err) == (0, "")
            found = json.loads(out)
            assert isinstance(found, list)
            return found

        await command("chat", *data, stdin="hello there")
        (session,) = await ran("list")
        id = session["id"]
        assert (await ran("show", id[:8]))[0]["rows"][0]["content"] == "hello there"
        assert (await ran("search", "there"))[0]["id"] == id
        assert (await ran("rename", id, "Mine"))[0]["title"] == "Mine"
        assert (await ran("pin", id))[0]["pinned"]
        assert (await ran("archive", id))[0]["archived"]
        assert (await ran("fork", id, "chat-copy:local", "--before-user", "1"))[0]["parent_id"] == id
        assert (await ran("close", "chat:local"))[0]["id"] == id
        _, out, _ = await command("chat", *data, stdin="anew")
        assert "1 message," in out
        _, out, _ = await command("chat", "copy", *data, stdin="on with the copy")
        assert "3 messages," in out
        assert (await ran("delete", id, "--yes"))[0]["id"] == id
        assert {one["key"] for one in await ran("list", "--all")} == {"chat:local", "chat-copy:local"}
        assert {one["channel"]: one["message_count"] for one in await ran("stats")} == {"chat": 2, "chat-copy": 4}
        assert await gateway.stop() == 0


async def test_a_narrow_encoding_and_bytes_that_are_no_text_are_survived(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="世界")
    code, out, err = await command("sessions", "list", "--data", str(tmp_path), extra={"PYTHONIOENCODING": "ascii"})
    assert (code, err) == (0, "")
    assert "\\u4e16\\u754c" in out
    broken = b"\xff\xfe".decode(errors="surrogateescape")
    for arguments, expected in (
        (["show", broken * 6], 1), (["search", broken], 2), (["search", f"a{broken}"], 1),
        (["list", "--channel", broken], 0),
        (["rename", "chat:local", f"a{broken}"], 0), (["show", f"chat:{broken}"], 1), (["list", "--cursor", broken], 2),
    ):  # fmt: skip
        code, _, err = await command("sessions", *arguments, "--data", str(tmp_path))
        assert (code, "Traceback" in err) == (expected, False)


@pytest.mark.parametrize(("output", "code", "told"), [("/dev/full", 2, "cannot write the output"), ("|", 1, "")])
def test_an_output_that_takes_nothing_is_no_traceback(shelf: Shelf, output: str, code: int, told: str) -> None:
    shelf.say(DIRECT, "hello")
    closed, broken = os.pipe()
    os.close(closed)
    with open(broken if output == "|" else output, "w") as stream:
        ran = subprocess.run(
            [TRUNKLINE, "sessions", "list", "--data", shelf.data],
            stdout=stream, stderr=subprocess.PIPE, text=True, check=False, env=environment(), timeout=60,
        )  # fmt: skip
        if output != "|":
            os.close(broken)
    assert ran.returncode == code
    assert told in ran.stderr
    assert ran.stderr.count("\n") == bool(told)


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


def test_the_page_lists_every_command_and_field() -> None:
    fields = re.search(r"has the fields\n\n`([^`]+)`", PAGE)
    assert fields is not None
    assert fields[1].replace("\n", " ").split(", ") == HEADER
    commands = set(re.findall(r"^\| `(\w+)", PAGE.partition("## Commands")[2], re.MULTILINE))
    assert commands == {arguments[0] for arguments in EVERY_COMMAND}


def test_each_key_on_the_page_is_one() -> None:
    keys = re.findall(r"`((?:slack|telegram|console|chat|chat-work):[^`]+)`", PAGE)
    assert len(keys) == 9
    assert [str(SessionKey.parse(key)) for key in keys] == keys


def test_the_example_of_the_library_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "example.py"
    file.write_text(example, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-W", "error", file], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "a model would be sent: ['Norway in June', 'Noted: Norway in June']",
        "notes:holidays (untitled) open",
        "notes:holidays Summer plans closed",
    ]
