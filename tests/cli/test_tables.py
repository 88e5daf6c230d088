"""What commands print, on terminals and elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gateway.cli import tables
from gateway.cli.columns import clipped, width
from gateway.domain.keys import Route, SessionKey
from gateway.domain.origins import Origin
from gateway.domain.session import Session
from gateway.ports.sessions import Found, NewSession
from tests.acceptance.gateway import TRUNKLINE, command, environment
from tests.acceptance.terminal import on_a_terminal
from tests.cli.shelf import DIRECT, Shelf
from tests.stores import NOON

COUNTED = ("sessions", "open", "closed", "pinned", "archived", "message_count")


def test_columns_are_aligned_whatever_is_written_in_them(shelf: Shelf) -> None:
    titles = ("plain", "世界 wide", "e\u0301 accent", "👨‍👩‍👧‍👦 family", "❤️ heart", "🇩🇪 flag", "क्षि")
    for number, title in enumerate(titles):
        origin = Origin(kind="api", label=title)
        shelf.say(Route("api", str(number)), "end", new=NewSession(origin=origin))
    lines = shelf.lines("list")
    assert len(lines) == 1 + len(titles)
    assert len({width(line[: line.rindex("end")]) for line in lines[1:]}) == 1
    assert len({line.index("api:") for line in lines[1:]}) == 1


def test_a_width_is_what_a_terminal_makes_of_a_text() -> None:
    texts = ("abc", "世界", "e\u0301", "👨‍👩‍👧‍👦", "🇩🇪🇫🇷", "👍🏽", "❤️", "ｱ", "\u200b")
    assert [width(text) for text in texts] == [3, 4, 1, 2, 4, 2, 2, 1, 0]
    assert [clipped("世界 wide", most) for most in (9, 6, 4)] == ["世界 wide", "世界…", "世…"]
    assert clipped("👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦", 5) == "👨‍👩‍👧‍👦👨‍👩‍👧‍👦…"


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


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_tables_fit_terminals_of_every_width(columns: int) -> None:
    titles = ("plain words " * 9, "世界" * 40, "👨‍👩‍👧‍👦 ❤️ 🇩🇪 " * 20, "e\u0301" * 90, "한국어 제목")
    keys = ("slack:C012ABCDE:1764504000.000100", "telegram:-1001234567890:17", "chat:local", f"api:{'世' * 60}", "a:b")
    sessions = [
        Session(
            id=f"{place}a5c0ffee{place:024}", key=SessionKey.parse(key), created_at=NOON, updated_at=NOON, title=title,
            message_count=1_000_000, pinned=True, archived=True, closed_at=NOON, origin=Origin(kind="api", label=title),
        )
        for place, (title, key) in enumerate(zip(titles, keys, strict=True))
    ]  # fmt: skip
    counts = [
        {"channel": "chat-" + "k" * 50, "updated_at": NOON.isoformat(), **dict.fromkeys(COUNTED, 1_000_000)},
        {"channel": "slack", "updated_at": NOON.isoformat(), **dict.fromkeys(COUNTED, 1)},
    ]
    found = [Found(session=session, seq=1_000_000, snippet=session.title) for session in sessions]
    shown = (
        (tables.session_lines(sessions, columns), "TITLE"),
        (tables.found_lines(found, columns), "FOUND"),
        (tables.count_lines(counts, columns), "LAST USED"),
    )
    for lines, last in shown:
        assert lines[0].endswith(last)
        assert max(map(width, lines)) <= columns
    assert all(line.startswith(session.id[:8]) for line, session in zip(shown[0][0][1:], sessions, strict=True))


def test_a_narrow_list_leaves_out_what_matters_least() -> None:
    session = Session(
        id="a" * 32, key=SessionKey("slack", "D012ABCDE"), created_at=NOON, updated_at=NOON, title="t" * 90
    )
    headings = {
        columns: " ".join(tables.session_lines([session], columns)[0].split()) for columns in (40, 50, 60, 80, 120)
    }
    assert headings == {
        40: "ID UPDATED TITLE",
        50: "ID UPDATED TITLE",
        60: "ID UPDATED KEY TITLE",
        80: "ID UPDATED ROWS STATE KEY TITLE",
        120: "ID UPDATED ROWS STATE KEY FROM TITLE",
    }


async def test_lines_fit_a_terminal(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="世界 " * 40)
    async with on_a_terminal("sessions", "list", "--data", str(tmp_path)) as terminal:
        assert await terminal.ended() == 0
        await terminal.shows("…")
        lines = terminal.text.splitlines()
    assert lines[0].split() == ["ID", "UPDATED", "ROWS", "STATE", "KEY", "TITLE"]
    assert max(map(width, lines)) <= 80


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
