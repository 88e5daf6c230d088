"""`trunkline doctor` as an operator meets it: each check, with what is well and what is not."""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.app.doctor.findings import spoken
from gateway.app.locks import only_process
from gateway.cli.main import app
from gateway.domain.errors import Unavailable
from gateway.domain.keys import Route
from gateway.ports.leases import lane_lease
from gateway.store import Store
from tests.acceptance.gateway import REPOSITORY, TRUNKLINE, Gateway, command, environment
from tests.cli.setting_aside import set_aside
from tests.cli.shelf import DIRECT, FAMILY, Shelf
from tests.clock import ManualClock
from tests.stores import delivery, message

SLACK = '[channels.slack]\nbot_token = "xoxb-1-hidden"\napp_token = "xapp-1-hidden"\n'
TELEGRAM = '[channels.telegram]\nbot_token = "123456:hidden-hidden"\n'
HEALTHY = f'{SLACK}people = ["U1", "U2"]\nchats = ["C1"]\n{TELEGRAM}people = [1]\n'
CHECKS = [
    "configuration", "data directory", "store", "gateway", "models", "channel slack", "channel telegram",
    "turns set aside", "deliveries given up", "deliveries waiting", "damaged records",
]  # fmt: skip
PAGE = 4096


class Patient(Shelf):
    """A store that the doctor looks at, filled three hours ago."""

    def __init__(self, data: Path) -> None:
        super().__init__(data)
        self.clock = ManualClock(datetime.now(UTC) - timedelta(hours=3))
        self.database = data / "trunkline.db"
        self.lock = data / "trunkline.db.gateway.lock"
        self.configure(HEALTHY)

    def configure(self, text: str) -> None:
        (self.data / "trunkline.toml").write_text(text)

    def look(self, *arguments: str) -> tuple[int, str]:
        """Run the doctor; return its exit code and all that it says."""
        result = CliRunner().invoke(app, ["doctor", "--data", str(self.data), *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.output

    def found(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """Return what is found, by the names of the checks."""
        return {one["check"]: one for one in json.loads(self.look(*arguments, "--json")[1])}

    def marks(self) -> dict[str, str]:
        """Return the checks that are not ok, with their marks."""
        return {check: one["mark"] for check, one in self.found().items() if one["mark"] != "ok"}

    def sql(self, *statements: str) -> None:
        """Change the store behind its back."""
        with closing(sqlite3.connect(self.database)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    def files(self) -> dict[str, tuple[bytes, int]]:
        """Return every file with what it holds and who may read it."""
        return {one.name: (one.read_bytes(), one.stat().st_mode) for one in self.data.iterdir()}

    @contextmanager
    def gateway(self) -> Iterator[None]:
        """Hold the lock as a gateway does."""
        with only_process(self.lock, "a gateway"):
            yield


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep away what the machine of whoever runs the tests has set, and refuse every connection."""
    for name in list(os.environ):
        if name.startswith("TRUNKLINE_") or name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("the doctor calls nobody")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    """A store with a chat in it, of a gateway that was stopped in good order."""
    data = tmp_path / "data"
    data.mkdir()
    patient = Patient(data)
    patient.say(DIRECT, "hello")
    with patient.gateway():
        pass
    return patient


async def _give_up(store: Store, route: Route, n: int, why: str) -> None:
    await store.outbox.enqueue([delivery("private words", n, route=route)])
    lease = await store.leases.acquire(lane_lease(route.lane), "test", timedelta(seconds=30))
    assert lease is not None
    head = await store.outbox.next(route.lane, lease)
    assert head is not None
    await store.outbox.dead(head.id, lease, why)
    await store.leases.release(lease)


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


def test_a_gateway_that_runs_is_named_and_keeps_its_lock(patient: Patient) -> None:
    with patient.gateway():
        assert patient.found()["gateway"]["found"] == f"runs as process {os.getpid()}"
        with pytest.raises(Unavailable), only_process(patient.lock, "a gateway"):
            pass
    with patient.gateway():
        pass


def test_a_lock_that_is_free_is_left_to_whoever_comes_next(patient: Patient) -> None:
    patient.look()
    with only_process(patient.lock, "a gateway") as was_killed:
        assert not was_killed


async def test_a_real_gateway_is_seen_while_it_runs_and_missed_once_it_is_killed(tmp_path: Path) -> None:
    async with Gateway(tmp_path, "") as gateway:
        chosen = ("doctor", "--data", str(gateway.data), "--config", str(gateway.config))
        code, out, err = await command(*chosen)
        assert (code, err) == (0, "")
        assert f"runs as process {gateway.pid}" in out
        await gateway.kill()
        code, out, err = await command(*chosen)
        assert (code, err) == (0, "")
        assert f"none runs; the last one was killed (process {gateway.pid})" in out
        # What it left behind is there for the next one to find.
        assert gateway.database.with_name("trunkline.db.gateway.lock").read_text() == f"process {gateway.pid}\n"


def test_a_model_without_its_key_is_wrong_unless_a_gateway_runs_that_may_have_it(patient: Patient) -> None:
    patient.configure(f'[model]\ndefault = "anthropic:claude-sonnet-5-5"\n{HEALTHY}')
    code, out = patient.look()
    assert code == 1
    assert "wrong  models" in out
    assert "set ANTHROPIC_API_KEY" in out
    with patient.gateway():
        code, out = patient.look()
    assert code == 0
    assert "warn   models" in out
    assert "The gateway that runs may have it" in out


def test_a_model_that_has_its_key_is_ok_and_the_key_is_not_shown(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient.configure(f'[model]\ndefault = "anthropic:claude-sonnet-5-5"\n{HEALTHY}')
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-hidden")
    code, out = patient.look()
    assert code == 0
    assert "anthropic:claude-sonnet-5-5 answers\n" in out
    assert "hidden" not in out


def test_a_model_that_nobody_serves_is_wrong_whether_a_gateway_runs_or_not(patient: Patient) -> None:
    patient.configure(f'[model]\nfallback = "opnai:gpt-5"\n{HEALTHY}')
    with patient.gateway():
        found = patient.found()["models"]
    assert found["mark"] == "wrong"
    assert "did you mean openai?" in found["found"]
    assert str(patient.data / "trunkline.toml") in found["todo"]


def test_a_channel_without_its_token_is_wrong_unless_a_gateway_runs_that_may_have_it(patient: Patient) -> None:
    patient.configure('[channels.slack]\npeople = ["U1"]\n[channels.tg]\nkind = "telegram"\n')
    assert patient.marks() == {"channel slack": "wrong", "channel tg": "wrong"}
    found = patient.found()
    assert found["channel slack"]["found"] == "enabled, lacks bot_token and app_token"
    assert found["channel tg"]["details"] == [
        {
            "setting": "channels.tg.bot_token",
            "problem": "is missing; set it in the file or as TRUNKLINE_CHANNELS__TG__BOT_TOKEN",
        }
    ]
    with patient.gateway():
        assert patient.marks() == {"channel slack": "warn", "channel tg": "warn"}


@pytest.mark.parametrize(
    ("who", "mark", "words"),
    [
        ("", "warn", "closed: nobody is listed"),
        ('chats = ["C1"]', "warn", "closed: nobody is listed"),
        ('owners = ["U1"]', "ok", "1 person may talk"),
        ('people = ["*"]', "warn", "open: anybody may talk to it"),
        ('people = ["*"]\nchats = ["*"]', "warn", "open: anybody may talk to it, in every chat"),
        ('people = ["U1"]\nanyone_in = ["C1", "C2"]', "warn", "open: anybody may talk to it in 2 chats"),
        ("enabled = false", "ok", "not enabled"),
    ],
)
def test_who_may_talk_in_a_channel_is_told(patient: Patient, who: str, mark: str, words: str) -> None:
    patient.configure(f"{SLACK}{who}\n")
    found = patient.found()["channel slack"]
    assert (found["mark"], found["found"].removeprefix("enabled, has its token; ")) == (mark, words)
    assert patient.look()[0] == 0
    if mark == "warn":
        assert f"`people` under [channels.slack] in {patient.data / 'trunkline.toml'}" in found["todo"]


def test_without_a_file_the_variable_that_opens_a_channel_is_named(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    (patient.data / "trunkline.toml").unlink()
    monkeypatch.setenv("TRUNKLINE_CHANNELS__TELEGRAM__BOT_TOKEN", "123456:hidden-hidden")
    assert "into TRUNKLINE_CHANNELS__TELEGRAM__PEOPLE." in patient.found()["channel telegram"]["todo"]


def test_a_terminal_needs_no_list(patient: Patient) -> None:
    patient.configure("[channels.console]\n")
    assert patient.marks() == {}
    assert "whoever sits at the terminal" in patient.found()["channel console"]["found"]


def test_a_channel_whose_library_is_not_installed_is_wrong(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("channels.telegram", "telegram"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "telegram", None)
    assert patient.marks() == {"channel telegram": "wrong"}
    assert "pip install 'trunkline[telegram]'" in patient.look()[1]


def test_turns_that_were_set_aside_are_news_and_the_newest_are_named(patient: Patient) -> None:
    turns = [set_aside(patient, message("private words", 100 + n, route=FAMILY)) for n in range(7)]
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +turns set aside +7, the newest [12] hours? ago$", out, re.MULTILINE)
    assert "private" not in out
    found = patient.found()["turns set aside"]
    assert found["details"] == [
        {
            "begun": turn.started_at.isoformat(timespec="microseconds"),
            "session": "telegram:-100",
            "reference": turn.id[:8],
            "id": turn.session_id,
        }
        for turn in reversed(turns[2:])
    ]
    row = next(line for line in out.splitlines() if line.endswith(f"{turns[-1].id[:8]}   {turns[-1].session_id}"))
    assert row.split("  ")[1] == f"{turns[-1].started_at:%Y-%m-%d %H:%M} UTC"
    assert "`trunkline sessions show ID`" in out


def test_deliveries_given_up_are_told_by_channel_without_secrets_and_controls(patient: Patient) -> None:
    whys = ((DIRECT, "not_in_channel"), (FAMILY, "old"), (FAMILY, "\x1b[2Jtoken 123456:hidden-hidden refused"))
    for n, (route, why) in enumerate(whys):
        patient.act(lambda store, n=n, route=route, why=why: _give_up(store, route, n, why))  # type: ignore[misc]
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +deliveries given up +3, the newest 2 hours old$", out, re.MULTILINE)
    assert "hidden" not in out
    assert "private" not in out
    assert "\x1b" not in out
    assert re.search(r"^  telegram +2 .* UTC  \\x1b\[2Jtoken \*\*\* refused$", out, re.MULTILINE)
    assert [(one["channel"], one["count"]) for one in patient.found()["deliveries given up"]["details"]] == [
        ("telegram", 2),
        ("slack", 1),
    ]


def test_deliveries_that_wait_are_told_once_they_wait_long(patient: Patient) -> None:
    for n, route in enumerate((DIRECT, DIRECT, Route("chat", "local"), Route("gone", "1"))):
        patient.act(lambda store, n=n, route=route: store.outbox.enqueue([delivery("private", n, route=route)]))  # type: ignore[misc]
    patient.sql("UPDATE outbox SET error = 'rate_limited' WHERE position = 1")
    found = patient.found()["deliveries waiting"]
    assert found["mark"] == "warn"
    assert found["found"] == "4 for longer than 10 minutes, the oldest for 2 hours"
    assert [(one["channel"], one["count"], one["why"]) for one in found["details"]] == [
        ("gone", 1, "no channel of this name is enabled here"),
        ("chat", 1, "that terminal is not open"),
        ("slack", 2, "rate_limited"),
    ]
    assert "`trunkline run` starts it" in found["todo"]
    with patient.gateway():
        assert "go out by themselves" in patient.found()["deliveries waiting"]["todo"]
    moment = (datetime.now(UTC) - timedelta(minutes=8)).timestamp() * 1_000_000
    patient.sql(f"UPDATE outbox SET created_at = {moment:.0f}")
    assert patient.marks() == {}


def test_records_that_were_put_aside_as_damaged_are_counted(patient: Patient) -> None:
    patient.sql(
        "INSERT INTO set_aside (session_id, field, value) VALUES ('x', 'grants', 'private')",
        "UPDATE inbox SET state = 'set aside', body = 'private'",
    )
    code, out = patient.look()
    assert code == 0
    assert re.search(r"^warn +damaged records +2 could not be read and were put aside$", out, re.MULTILINE)
    assert "private" not in out
    assert patient.found()["damaged records"]["details"] == [
        {"what": "values of sessions", "count": 1},
        {"what": "events that came in", "count": 1},
    ]


@pytest.mark.parametrize("key", ["'slack'", "'a:b:c:d:e'"])
def test_damage_that_keeps_the_store_from_being_read_is_told_and_no_traceback(patient: Patient, key: str) -> None:
    set_aside(patient, message("private words", 100))
    patient.sql(f"UPDATE sessions SET key = {key}")
    code, out = patient.look()
    assert code == 1
    assert re.search(r"^wrong +contents of the store +cannot be read: ", out, re.MULTILINE)
    assert "private" not in out


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (timedelta(seconds=-5), "less than a minute"),
        (timedelta(seconds=119), "1 minute"),
        (timedelta(minutes=59), "59 minutes"),
        (timedelta(minutes=119), "1 hour"),
        (timedelta(days=2, hours=5), "2 days"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(age: timedelta, words: str) -> None:
    assert spoken(age) == words


def test_the_page_tells_of_every_check_and_field(patient: Patient) -> None:
    page = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert rows == [*CHECKS[:5], "channel NAME", *CHECKS[7:], "contents of the store"]
    (one, *_) = patient.found().values()
    assert all(f"`{field}`" in page for field in one)
