"""`trunkline import` and `trunkline export` as a person meets them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from datetime import UTC
from pathlib import Path

import pytest

from gateway.store.nanobot.reader import NanobotSource
from tests.acceptance.gateway import TRUNKLINE, command, environment
from tests.clock import ManualClock
from tests.store.nanobot import nanobot_tree
from tests.store.nanobot.nanobot_tree import assistant, user
from tests.store.openworker import openworker_tree

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


def nanobots(folder: Path) -> nanobot_tree.Tree:
    """Return a home of nanobot with a Telegram chat, a Slack thread and a damaged file."""
    tree = nanobot_tree.Tree(folder / "nanobot")
    picture = folder / "plan.png"
    picture.write_bytes(PNG)
    tree.session("telegram:111", user("hello", media=[str(picture), "/gone/x.png"]), assistant("hi"))
    tree.session("slack:C1:1700000000.000100", user("deploy"), assistant("done"))
    tree.put(b"", "broken.jsonl")
    return tree


async def trunkline(data: Path, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
    return await command(*arguments, "--data", str(data), stdin=stdin)


async def keys(data: Path) -> list[str]:
    _, out, _ = await trunkline(data, "sessions", "list", "--all", "--json")
    return sorted(session["key"] for session in json.loads(out))


async def test_a_home_of_nanobot_is_taken_over_and_told_of_session_by_session(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    arguments = ("import", "nanobot", str(tree.workspace), "--channel", "slack=slack-acme", "--timezone", "UTC")
    code, out, _ = await trunkline(data, *arguments)
    assert code == 1
    assert "broken.jsonl: skipped: it is empty" in out
    assert out.endswith("Imported: 2, skipped: 1 (rows: 4, files: 1)\n")
    assert await keys(data) == ["slack-acme:C1:1700000000.000100", "telegram:111"]
    assert len([path for path in (data / "media").rglob("*") if path.is_file() and path.stat().st_size == 108]) == 1


async def test_importing_again_changes_nothing(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    before = (await trunkline(data, "export", "--all"))[1]
    code, out, _ = await trunkline(data, "import", "nanobot", str(tree.workspace))
    assert (code, "there already: 2" in out.lower()) == (1, True)
    assert (await trunkline(data, "export", "--all"))[1] == before


async def test_a_dry_run_tells_the_same_and_leaves_no_trace(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    code, out, _ = await trunkline(data, "import", "nanobot", str(tree.workspace), "--dry-run")
    assert (code, "Nothing was changed" in out, "Imported: 2" in out) == (1, True, True)
    assert not data.exists()


async def test_the_report_for_programs_names_every_session(tmp_path: Path) -> None:
    tree = nanobots(tmp_path)
    _, out, _ = await trunkline(tmp_path / "data", "import", "nanobot", str(tree.workspace), "--json")
    report = {line["name"]: line for line in json.loads(out)}
    assert {line["outcome"] for line in report.values()} == {"imported", "skipped"}
    assert report["telegram:111"]["rows"] == 2
    assert report["broken.jsonl"]["why"] == "it is empty"


async def test_what_is_there_already_keeps_its_chat_and_the_import_is_kept_as_closed(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    other = nanobot_tree.Tree(tmp_path / "other")
    other.session("telegram:111", user("another life"), assistant("yes"), created_at="2025-01-01T00:00:00")
    code, out, _ = await trunkline(data, "import", "nanobot", str(other.workspace))
    assert (code, "open session already" in out) == (0, True)
    assert (await keys(data)).count("telegram:111") == 2


async def test_openworkers_sessions_stay_listed_until_they_are_attached_to_a_chat(tmp_path: Path) -> None:
    tree, data = openworker_tree.Tree(tmp_path / "coworker"), tmp_path / "data"
    tree.session("a" * 32, title="Plans", model="anthropic:x")
    code, out, _ = await trunkline(data, "import", "openworker", str(tmp_path / "coworker"))
    assert (code, out.startswith("Imported: 1")) == (0, True)
    assert await keys(data) == [f"openworker:{'a' * 32}"]
    assert (await trunkline(data, "sessions", "attach", "a" * 32, "telegram:5"))[0] == 0
    assert await keys(data) == ["telegram:5"]


async def test_everything_moves_to_another_machine_without_loss(tmp_path: Path) -> None:
    tree, first, second = nanobots(tmp_path), tmp_path / "first", tmp_path / "second"
    await trunkline(first, "import", "nanobot", str(tree.workspace))
    await trunkline(first, "sessions", "pin", "telegram:111")
    _, exported, _ = await trunkline(first, "export", "--all")
    code, out, _ = await trunkline(second, "import", "trunkline", "-", stdin=exported)
    assert (code, out) == (0, "Imported: 2 (rows: 4, files: 1)\n")
    assert (await trunkline(second, "export", "--all"))[1] == exported


async def test_an_export_for_nanobot_is_read_by_it_again_with_its_pictures(tmp_path: Path) -> None:
    tree, data, out = nanobots(tmp_path), tmp_path / "data", tmp_path / "out"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    assert (await trunkline(data, "export", "--all", "--format", "nanobot", "--output", str(out)))[0] == 0
    found = list(NanobotSource(out, zone=UTC, now=ManualClock().now()).sessions())
    assert sorted(str(one.copy.session.key) for one in found if one.copy) == [
        "slack:C1:1700000000.000100",
        "telegram:111",
    ]
    (files,) = [one.files for one in found if one.files]
    assert [file.path.read_bytes() for file in files.values() if file.path] == [PNG]


async def test_markdown_is_for_people_and_holds_no_path(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    code, out, _ = await trunkline(data, "export", "telegram:111", "--format", "markdown")
    assert (code, "[image: plan.png" in out, str(tmp_path) in out) == (0, True, False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "nanobot", "/nowhere"), "/nowhere"),
        (("import", "openworker", "/nowhere"), "/nowhere"),
        (("import", "trunkline", "/nowhere"), "there is no such file: /nowhere"),
        (("import", "nanobot", ".", "--channel", "slack"), "expected OLD=NEW"),
        (("import", "nanobot", ".", "--channel", "slack=A B"), "expected a channel name"),
        (("import", "nanobot", ".", "--timezone", "Mars"), "expected a name such as Europe/Berlin"),
        (("export",), "expected a session or --all, got neither"),
        (("export", "slack:D1", "--all"), "got both"),
        (("export", "--all", "--format", "nanobot"), "--output DIRECTORY"),
        (("export", "--all"), "there is no database"),
    ],
)
async def test_wrong_use_is_told_in_one_sentence(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = await trunkline(tmp_path / "data", *arguments)
    assert (code, out, said in err, len(err.strip().splitlines())) == (2, "", True, 1)
    assert not (tmp_path / "data").exists()


async def test_an_export_never_writes_over_a_file_and_leaves_no_half_one(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    there = tmp_path / "there.jsonl"
    there.write_text("mine")
    code, _, err = await trunkline(data, "export", "--all", "--output", str(there))
    assert (code, "not there yet" in err, there.read_text()) == (2, True, "mine")
    code, _, err = await trunkline(data, "export", "--all", "--output", str(tmp_path / "no" / "such.jsonl"))
    assert (code, "cannot write" in err) == (2, True)
    assert (await trunkline(data, "export", "slack:none"))[0] == 1


@pytest.mark.parametrize("form", ["jsonl", "markdown", "nanobot"])
async def test_an_export_into_a_full_disk_is_one_sentence_and_nothing_complains_after_it(
    tmp_path: Path, form: str
) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    which = "telegram:111" if form == "nanobot" else "--all"
    with await asyncio.to_thread(open, "/dev/full", "w") as full:
        ran = await asyncio.to_thread(
            subprocess.run,
            [TRUNKLINE, "export", which, "--format", form, "--data", str(data)],
            stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (2, "trunkline: cannot write the output: No space left on device\n")


async def test_a_reader_that_has_seen_enough_ends_an_export_silently(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    closed, broken = os.pipe()
    os.close(closed)
    ran = await asyncio.to_thread(
        subprocess.run,
        [TRUNKLINE, "export", "--all", "--data", str(data)],
        stdout=broken, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60,
    )  # fmt: skip
    os.close(broken)
    assert (ran.returncode, ran.stderr) == (1, "")


@pytest.mark.parametrize("form", ["jsonl", "nanobot"])
async def test_an_output_below_a_file_is_one_sentence(tmp_path: Path, form: str) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    output = str(tree.workspace / "sessions" / "broken.jsonl" / "x")
    code, out, err = await trunkline(data, "export", "--all", "--format", form, "--output", output)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("trunkline: cannot write ")
    assert err.endswith("Not a directory\n")


async def test_a_trial_does_not_promise_a_session_that_was_deleted_here(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    await trunkline(data, "import", "nanobot", str(tree.workspace))
    await trunkline(data, "sessions", "delete", "telegram:111", "--yes")
    for trial in (["--dry-run"], []):
        _, out, _ = await trunkline(data, "import", "nanobot", str(tree.workspace), *trial)
        assert "telegram:111: skipped: it was imported before and has been deleted since" in out


async def test_a_file_that_is_missing_is_told_by_its_name(tmp_path: Path) -> None:
    tree, data = nanobots(tmp_path), tmp_path / "data"
    _, out, _ = await trunkline(data, "import", "nanobot", str(tree.workspace))
    assert "the file x.png is not there or cannot be read; its name is kept" in out
    assert "/gone" not in out
