"""`trunkline doctor` as an operator meets it: the configuration, the data directory and the store's file."""

from __future__ import annotations

import ctypes
import json
import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from tests.acceptance.gateway import TRUNKLINE, Gateway, command, environment
from tests.cli.doctor.patient import CHECKS, PAGE, Patient


def test_where_all_is_well_each_check_is_one_line_and_nothing_changes(patient: Patient) -> None:
    before = patient.files()
    code, out = patient.look()
    assert code == 0
    lines = [re.split(" {2,}", line, maxsplit=2) for line in out.splitlines()]
    assert [line[:2] for line in lines] == [["ok", check] for check in CHECKS]
    said = {check: found for _, check, found in lines}
    assert said["configuration"] == str(patient.data / "trunkline.toml")
    assert re.fullmatch(r"/.*/trunkline\.db: \d+ kB, intact", said["store"])
    assert said["gateway"] == "none runs; the last one was stopped in good order"
    assert said["models"] == "echo answers; no language model: it repeats what it was given"
    assert said["channel slack"] == "enabled, has its token; 2 people may talk, in 1 chat and directly"
    assert said["channel telegram"] == "enabled, has its token; 1 person may talk"
    assert said["deliveries waiting"] == "none for longer than 10 minutes"
    assert patient.files() == before
    assert "hidden" not in out


def test_a_program_is_given_the_same(patient: Patient) -> None:
    code, out = patient.look("--json")
    assert code == 0
    found = json.loads(out)
    assert [one["check"] for one in found] == CHECKS
    assert found[3] == {
        "check": "gateway",
        "mark": "ok",
        "found": "none runs; the last one was stopped in good order",
        "details": [],
        "todo": "",
    }


def test_what_is_not_there_yet_is_well_and_is_not_made(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["doctor", "--data", str(tmp_path / "none")])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 6
    assert sum("not there yet; `trunkline run` makes it" in line for line in lines) == 2
    assert "no file; the defaults" in lines[0]
    assert "none runs, and none has run here yet" in lines[3]
    assert "in a terminal only" in lines[5]
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_a_store_that_is_not_there_yet(patient: Patient) -> None:
    patient.database.write_bytes(b"")
    assert "not there yet" in patient.found()["store"]["found"]
    assert patient.database.stat().st_size == 0


@pytest.mark.parametrize(
    ("text", "details"),
    [
        (
            '[model]\ndefalt = "echo"\n[channels.slack]\nbot_token = "xoxp-hidden"\napp_token = "xapp-1-hidden"\n',
            [
                {"setting": "model.defalt", "problem": "unknown setting; did you mean default?"},
                {
                    "setting": "channels.slack.bot_token",
                    "problem": "expected a token that starts with xoxb- (the Bot User OAuth Token under"
                    " 'OAuth & Permissions'), got a text",
                },
            ],
        ),
        ("a = = 1", [{"setting": "", "problem": "{file}: line 1: Invalid value"}]),
        (
            '[store]\nurl = "mysql://u:hidden@h/db"',
            [{"setting": "store.url", "problem": "expected sqlite:///PATH, got mysql://…"}],
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_told_as_its_problems(
    patient: Patient, text: str, details: list[dict[str, str]]
) -> None:
    patient.configure(text)
    file = str(patient.data / "trunkline.toml")
    (found,) = patient.found().values()
    assert (found["check"], found["mark"], found["found"]) == ("configuration", "wrong", f"{file}: cannot be used")
    expected = [{name: value.replace("{file}", file) for name, value in detail.items()} for detail in details]
    assert found["details"] == expected
    code, out = patient.look()
    assert code == 1
    assert all(detail["problem"] in out for detail in expected)
    assert "hidden" not in out


def test_a_file_that_was_named_and_is_not_there_is_wrong(patient: Patient) -> None:
    code, out = patient.look("--config", "nowhere.toml")
    assert code == 1
    assert "nowhere.toml: No such file or directory" in out


def test_a_data_directory_that_is_a_file_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["doctor", "--data", str(tmp_path / "file")])
    assert result.exit_code == 1
    assert f"{tmp_path / 'file'}: is no directory" in result.output


def _obey_permissions() -> None:
    """Give up what lets the superuser write everywhere, in a process that is about to be one of ours."""
    drop_from_bounding_set, dac_override = 24, 1  # prctl(2), capabilities(7)
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override)


def test_a_data_directory_that_cannot_be_written_to_is_wrong(patient: Patient) -> None:
    patient.data.chmod(0o500)
    arguments = [TRUNKLINE, "doctor", "--data", str(patient.data), "--json"]
    told = subprocess.run(arguments, capture_output=True, env=environment(), preexec_fn=_obey_permissions)
    patient.data.chmod(0o700)
    found = {one["check"]: one for one in json.loads(told.stdout)}["data directory"]
    assert (found["mark"], found["found"]) == ("wrong", f"{patient.data}: cannot be written to")


def _damage(patient: Patient, table: str) -> None:
    """Overwrite the first page of a table, as a failing disk does."""
    with closing(sqlite3.connect(patient.database)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with patient.database.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xff" * PAGE)


async def test_a_damaged_store_is_wrong_and_what_is_advised_mends_it(patient: Patient) -> None:
    _damage(patient, "turns")
    code, out, err = await command("doctor", "--data", str(patient.data), "--json")
    assert (code, err) == (1, "")
    found = {one["check"]: one for one in json.loads(out)}
    assert found["store"]["found"] == f"{patient.database}: damaged"
    assert "turns set aside" not in found
    assert f"`echo mend > {patient.lock}`" in found["store"]["todo"]
    patient.lock.write_text("mend\n")
    gateway = Gateway(patient.data.parent, "")
    gateway.data = patient.data
    async with gateway:
        code, out, _ = await command("doctor", "--data", str(patient.data), "--config", str(gateway.config))
        assert code == 0
        assert f"{patient.database}: " in out
        assert ", intact" in out
        assert await gateway.stop() == 0
    assert list(patient.data.glob("trunkline.db.damaged-*"))
    code, out, _ = await command("sessions", "show", "slack:D1", "--data", str(patient.data))
    assert code == 0
    assert "    echo of hello" in out.splitlines()


def test_what_is_no_database_of_ours_is_wrong_and_stays_as_it_is(patient: Patient) -> None:
    for content in (b"dear diary " * 1000, b"\0" * 8192, _foreign(patient.data / "other.db")):
        patient.database.write_bytes(content)
        assert patient.marks() == {"store": "wrong"}
        assert "is no database of Trunkline" in patient.found()["store"]["found"]
        assert patient.database.read_bytes() == content
    assert not patient.database.with_name("trunkline.db-wal").exists()


def _foreign(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE diary (day)")
        connection.commit()
    return path.read_bytes()


def test_a_store_of_another_release_is_not_opened(patient: Patient) -> None:
    for version, mark, words in ((9999, "wrong", "newer release"), (0, "warn", "older release")):
        patient.sql(f"PRAGMA user_version={version}")
        before = patient.database.read_bytes()
        assert patient.marks() == {"store": mark}
        found = patient.found()
        assert words in found["store"]["found"]
        assert "turns set aside" not in found
        assert patient.database.read_bytes() == before


def test_a_store_that_cannot_be_opened_is_wrong(patient: Patient) -> None:
    patient.database.unlink()
    patient.database.mkdir()
    found = patient.found()["store"]
    assert (found["mark"], found["todo"][:28]) == ("wrong", "Run the doctor as the user t")
    assert "cannot be opened" in found["found"]
