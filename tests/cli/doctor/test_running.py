"""What the doctor says of the gateway, its models and its channels."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gateway.app.locks import only_process
from gateway.domain.errors import Unavailable
from tests.acceptance.gateway import Gateway, command
from tests.cli.doctor.patient import HEALTHY, SLACK, Patient


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
