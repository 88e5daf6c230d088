"""`trunkline replay` as an operator meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.main import app
from gateway.domain.errors import TrunklineError
from gateway.domain.message import Kind, Message, Role
from tests.cli.shelf import DIRECT, Shelf

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(shelf: Shelf) -> Run:
    """Return how the command is run on the shelf's store."""

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["replay", *arguments, "--data", str(shelf.data)])
        if isinstance(result.exception, TrunklineError):
            return 2, str(result.exception)
        return result.exit_code, result.output

    return run


def test_it_shows_what_is_sent_and_what_is_not_and_why(shelf: Shelf, run: Run) -> None:
    hidden = Message(role=Role.USER, kind=Kind.COMMAND, content="/status")
    shelf.say(DIRECT, "please deploy", "and now?", rows=[hidden])
    code, out = run("slack:D1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("please deploy (slack:D1, ")
    assert any(line.startswith("model   echo: a window of 128,000 tokens") for line in lines)
    assert [line.split()[1] for line in lines if line.lstrip()[:1].isdigit()] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert lines[-1].endswith(": of the kind command, not for the model")


def test_it_tells_what_another_budget_would_leave_out(shelf: Shelf, run: Run) -> None:
    shelf.say(DIRECT, *(f"question {n} of some words" for n in range(6)))
    _, out = run("slack:D1", "--budget", "40", "--json")
    found = json.loads(out)
    assert found["budget"] == 40
    assert found["tokens"] <= 40
    assert {"role", "kind", "tokens", "text"} <= set(found["messages"][0])
    assert {left["reason"] for left in found["left_out"]} == {"over the token budget"}
    assert shelf.json("show", "slack:D1")[0]["replay_from"] == 0


def test_another_model_can_be_asked_about_without_its_key(shelf: Shelf, run: Run) -> None:
    shelf.say(DIRECT, "hi")
    assert (
        "model   anthropic:claude-opus-5: a window of 1,000,000 tokens"
        in run("slack:D1", "--model", "anthropic:claude-opus-5")[1]
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("slack:none",), 1, "no session is open"),
        (("slack:D1", "--budget", "0"), 2, "expected a number of tokens from 1"),
        (("slack:D1", "--model", "nobody"), 2, "nobody"),
    ],
)
def test_wrong_use_is_told_in_one_sentence(
    shelf: Shelf, run: Run, arguments: tuple[str, ...], code: int, said: str
) -> None:
    shelf.say(DIRECT, "hi")
    assert run(*arguments)[0] == code
    assert said in run(*arguments)[1]


def test_where_there_is_no_database_none_is_made(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["replay", "slack:D1", "--data", str(tmp_path / "none")])
    assert isinstance(result.exception, TrunklineError)
    assert not (tmp_path / "none").exists()
