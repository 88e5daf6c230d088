"""`trunkline import` and `trunkline export` where something is missing, shut, full, or not what it should be."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.gateway import TRUNKLINE, environment
from tests.cli.test_moving import PNG, keys, nanobots, trunkline
from tests.store.nanobot import nanobot_tree
from tests.store.nanobot.nanobot_tree import assistant, user


async def shell(line: str, data: Path, **more: str) -> tuple[int, bytes, str]:
    """Run a line of a shell, in which T is the command and D its data directory."""
    ran = await asyncio.to_thread(
        subprocess.run, ["sh", "-c", line], capture_output=True, timeout=60, check=False,
        env={**environment(), "T": str(TRUNKLINE), "D": str(data), **more},
    )  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr.decode()


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """Return a data directory with the two sessions of a nanobot, one of which has a picture."""
    await trunkline(tmp_path / "data", "import", "nanobot", str(nanobots(tmp_path).workspace))
    return tmp_path / "data"


def stored_files(data: Path) -> list[Path]:
    return [path for path in (data / "media").rglob("*") if path.is_file() and path.stat().st_size == len(PNG)]


@pytest.mark.parametrize("form", ["jsonl", "nanobot"])
@pytest.mark.parametrize("how", ["gone", "shut", "torn"])
async def test_a_file_that_is_not_there_any_more_is_told_and_costs_only_itself(
    data: Path, tmp_path: Path, form: str, how: str
) -> None:
    (file,) = stored_files(data)
    file.unlink()
    if how != "gone":
        # Where everything may be opened, as for root, a directory in its place cannot.
        file.mkdir() if how == "shut" else file.write_bytes(b"torn")
    code, _, err = await trunkline(data, "export", "--all", "--format", form, "--output", str(tmp_path / "out"))
    assert (code, "telegram:111: a file is missing: plan.png: " in err) == (1, True)
    if form == "jsonl":
        code, out, _ = await trunkline(tmp_path / "other", "import", "trunkline", str(tmp_path / "out"))
        assert (code, "Imported: 2" in out) == (0, True)
    else:
        assert len(list((tmp_path / "out" / "sessions").iterdir())) == 2


async def test_json_is_utf_8_whatever_the_terminal_reads(tmp_path: Path) -> None:
    tree, data = nanobot_tree.Tree(tmp_path / "nanobot"), tmp_path / "data"
    tree.session("telegram:1", user("Grüße 🎉"), assistant("ja"))
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    for form in ("jsonl", "nanobot"):
        code, out, _ = await shell(
            f'"$T" export telegram:1 --format {form} --data "$D"', data, PYTHONIOENCODING="latin-1"
        )
        assert code == 0
        assert "Grüße 🎉" in [json.loads(line).get("content") for line in out.decode().splitlines()]
    _, out, _ = await shell('"$T" export telegram:1 --format markdown --data "$D"', data, PYTHONIOENCODING="latin-1")
    assert b"Gr\xfc\xdfe \\U0001f389" in out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"$T" export --all --data "$D" >&-', "cannot write the output: there is none"),
        ('"$T" sessions list --data "$D" >&-', "cannot write the output: there is none"),
        ('"$T" import trunkline - --data "$D" <&-', "an export on standard input, and there is none"),
        ('"$T" import nanobot "" --data "$D"', "got an empty text"),
        ('"$T" export --all --hidden --data "$D"', "--hidden goes with --format markdown, got --format jsonl"),
        ('"$T" export --all --timezone UTC --data "$D"', "--timezone goes with --format nanobot"),
        ('"$T" export --all --channel a=b --data "$D"', "--channel goes with --format nanobot"),
    ],
)
async def test_what_cannot_be_read_or_written_is_one_sentence(data: Path, line: str, said: str) -> None:
    code, out, err = await shell(line, data)
    assert (code, out, said in err, len(err.splitlines())) == (2, b"", True, 1)


async def test_a_name_that_no_file_can_have_is_one_sentence_and_the_longest_one_is_written(
    data: Path, tmp_path: Path
) -> None:
    code, _, err = await trunkline(data, "export", "--all", "--output", str(tmp_path / ("x" * 300)))
    assert (code, err.endswith("File name too long\n"), len(err.splitlines())) == (2, True, 1)
    assert (await trunkline(data, "export", "--all", "--output", str(tmp_path / ("x" * 255))))[0] == 0


async def test_nothing_on_standard_input_is_no_import_that_went_well(tmp_path: Path) -> None:
    code, out, _ = await shell('false | "$T" import trunkline - --data "$D"', tmp_path / "data")
    assert (code, b"it is empty" in out) == (1, True)


async def test_an_export_of_everything_ends_with_how_many_sessions_there_were(data: Path, tmp_path: Path) -> None:
    _, out, _ = await trunkline(data, "export", "--all")
    assert json.loads(out.splitlines()[-1]) == {"type": "file_end", "sessions": 2}
    _, one, _ = await trunkline(data, "export", "telegram:111")
    assert json.loads(one.splitlines()[-1]) == {"type": "file_end", "sessions": 1}
    lines = out.splitlines(keepends=True)
    ends = [place for place, line in enumerate(lines, start=1) if line.startswith('{"type":"end"')]
    code, told, _ = await trunkline(tmp_path / "x", "import", "trunkline", "-", stdin="".join(lines[: ends[0]]))
    assert (code, "without its closing line" in told, len(await keys(tmp_path / "x"))) == (1, True, 1)


async def test_sessions_that_have_one_name_in_nanobot_do_not_stop_the_others(tmp_path: Path) -> None:
    tree, data, out = nanobot_tree.Tree(tmp_path / "nanobot"), tmp_path / "data", tmp_path / "out"
    for key in ("slack:C1", "acme:C1", "telegram:1"):
        tree.session(key, user("hello"), assistant("hi"))
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    arguments = ("export", "--all", "--format", "nanobot", "--output", str(out), "--channel", "acme=slack")
    code, _, err = await trunkline(data, *arguments)
    assert (code, "has the same key in nanobot" in err) == (1, True)
    assert len(list((out / "sessions").iterdir())) == 2
    code, _, err = await trunkline(data, *arguments)
    assert (code, err.count("is there already, and is not written over")) == (1, 3)


async def test_media_for_nanobot_is_never_written_over_a_file_that_is_there(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    await trunkline(data, "export", "telegram:111", "--format", "nanobot", "--output", str(out))
    (picture,) = (out / "media").iterdir()
    for session in (out / "sessions").iterdir():
        session.unlink()
    picture.write_bytes(b"somebody's own")
    code, _, err = await trunkline(data, "export", "telegram:111", "--format", "nanobot", "--output", str(out))
    assert (code, "another file is at" in err, picture.read_bytes()) == (1, True, b"somebody's own")
    assert [path.name for path in (out / "media").iterdir()] == [picture.name]


async def test_what_nanobot_cannot_hold_is_told_once_for_all_sessions(data: Path, tmp_path: Path) -> None:
    for key in ("telegram:111", "slack:C1:1700000000.000100"):
        await trunkline(data, "sessions", "pin", key)
    _, _, err = await trunkline(data, "export", "--all", "--format", "nanobot", "--output", str(tmp_path / "out"))
    assert err.count("pinned") == 1
    assert "not in nanobot's format: 2 sessions are pinned, of which nanobot knows nothing." in err


@pytest.mark.parametrize("column", ["workspace", "agent", "model", "mode", "title", "preview", "parent_id"])
async def test_bytes_in_a_column_of_text_cost_no_list_and_no_export(data: Path, tmp_path: Path, column: str) -> None:
    with closing(sqlite3.connect(data / "trunkline.db")) as connection, connection:
        connection.create_function("searchable", 1, lambda text: "")
        connection.execute(f"UPDATE sessions SET {column} = x'61ff62' WHERE channel = 'telegram'")
    code, out, err = await trunkline(data, "sessions", "list", "--json")
    assert (code, "Traceback" in err) == (0, False)
    found = {one["key"]: one for one in json.loads(out)}
    assert found["telegram:111"][column] == "a\ufffdb"
    code, out, _ = await trunkline(data, "export", "--all")
    assert (code, "a\ufffdb" in out) == (0, True)


async def test_sessions_are_listed_while_somebody_writes(data: Path) -> None:
    with closing(sqlite3.connect(data / "trunkline.db", isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert (await trunkline(data, "sessions", "list"))[0] == 0


async def test_a_command_that_only_reads_needs_no_token_of_a_channel(data: Path) -> None:
    (data / "trunkline.toml").write_text('[channels.slack]\npeople = ["U1"]\n[channels.telegram]\npeople = ["1"]\n')
    for arguments in (["sessions", "list"], ["export", "--all"], ["sessions", "attach", "telegram:111", "slack:D1"]):
        code, _, err = await trunkline(data, *arguments)
        assert (code, err) == (0, "")
    code, _, err = await trunkline(data, "run")
    assert (code, "bot_token" in err) == (2, True)


async def test_a_trial_prints_the_lines_of_the_real_run(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    tree.put(nanobot_tree.lines(nanobot_tree.header("telegram:111"), user("old")), nanobot_tree.lossy("telegram:111"))
    told = []
    for trial in (["--dry-run"], []):
        _, out, err = await trunkline(data, "import", "nanobot", str(tree.workspace), *trial)
        assert err == ""
        told.append([line for line in out.splitlines() if not line.startswith("Nothing was changed")])
    assert told[0] == told[1]
    assert any("telegram_111.jsonl, which this is" in line for line in told[0])
    assert told[0][-1] == "Imported: 2, imported as closed: 1, skipped: 1 (rows: 5, files: 1)"


async def test_nothing_is_called_repaired_of_what_was_skipped(tmp_path: Path) -> None:
    tree = nanobot_tree.Tree(tmp_path / "nanobot")
    tree.put(b"{half\n", nanobot_tree.canonical("slack:C1"))
    _, out, _ = await trunkline(tmp_path / "data", "import", "nanobot", str(tree.workspace))
    assert "repaired" not in out
    assert "(slack:C1): skipped: there is nothing in it that can be read" in out


async def test_a_picture_that_many_rows_name_is_copied_once(tmp_path: Path) -> None:
    tree, picture = nanobot_tree.Tree(tmp_path / "nanobot"), tmp_path / "plan.png"
    picture.write_bytes(PNG)
    tree.session("telegram:1", *[user(f"look {n}", media=[str(picture)]) for n in range(50)])
    _, out, _ = await trunkline(tmp_path / "data", "import", "nanobot", str(tree.workspace))
    assert out.endswith("(rows: 50, files: 1)\n")
    _, out, _ = await trunkline(tmp_path / "data", "export", "telegram:1")
    rows = [row for row in map(json.loads, out.splitlines()) if row["type"] == "row"]
    refs = [file["ref"] for row in rows for file in row["media"]]
    assert (len(refs), len(set(refs))) == (50, 1)


async def test_a_key_as_nanobot_spells_it_names_its_session(tmp_path: Path) -> None:
    tree, data = nanobot_tree.Tree(tmp_path / "nanobot"), tmp_path / "data"
    tree.session("telegram:-100:topic:17", user("hello"))
    tree.session("cli:direct", user("hello"))
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    for ref, key in (("telegram:-100:topic:17", "telegram:-100:17"), ("cli:direct", "console:local")):
        _, out, _ = await trunkline(data, "sessions", "show", ref, "--json")
        assert json.loads(out)[0]["key"] == key
    code, _, err = await trunkline(data, "sessions", "show", "telegram:-100:topic:18")
    assert (code, "telegram:-100:18" in err) == (1, True)
