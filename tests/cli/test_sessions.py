"""`trunkline sessions` as a script uses it, and the page that explains it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.keys import SessionKey
from tests.acceptance.gateway import REPOSITORY, Gateway, command
from tests.cli.shelf import DIRECT, EVERY_COMMAND, HEADER, Shelf

PAGE = (REPOSITORY / "docs" / "sessions.md").read_text(encoding="utf-8")


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
        (["search", "👨‍👩‍👧‍👦"], "at least one word"),
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
        assert (await ran("clear", id, "--yes"))[0]["moved"] == 2
        assert (await ran("close", "chat:local"))[0]["id"] == id
        _, out, _ = await command("chat", *data, stdin="anew")
        assert "1 message," in out
        _, out, _ = await command("chat", "copy", *data, stdin="on with the copy")
        assert "3 messages," in out
        assert (await ran("delete", id, "--yes"))[0]["id"] == id
        assert {one["key"] for one in await ran("list", "--all")} == {"chat:local", "chat-copy:local"}
        assert {one["channel"]: one["message_count"] for one in await ran("stats")} == {"chat": 2, "chat-copy": 4}
        assert await gateway.stop() == 0


@pytest.mark.parametrize("arguments", EVERY_COMMAND, ids=lambda arguments: arguments[0])
def test_a_flag_is_shown_as_something_without_a_value(shelf: Shelf, arguments: list[str]) -> None:
    code, out, _ = shelf.run(arguments[0], "--help")
    assert code == 0
    assert "--json" in out
    assert "<bool>" not in out
    assert "<path>" in out


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
