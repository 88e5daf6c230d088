"""What is taken from rows by rule: files, commands, results that were published, tools, and what people wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.compaction.extraction import (
    LONGEST_USER_MESSAGE,
    MOST_COMMANDS,
    MOST_FILES,
    MOST_USER_MESSAGES,
    Extracted,
    extracted,
)
from gateway.domain.compaction.state import CompactionState
from gateway.domain.message import Kind, Mark, MediaRef, Message
from tests.domain.compaction.rows import any_rows, bot, call, numbered, result, user


def state_of(found: Extracted) -> CompactionState:
    return CompactionState(
        working_state=found.working_state, user_messages=found.user_messages, user_messages_dropped=found.dropped
    )


def ran(outcome: Message | None) -> str:
    rows = [call("1", "run_shell", {"command": "make"}), *([outcome] if outcome else [])]
    return str(extracted(None, rows).working_state["commands"][0])


def test_files_are_named_newest_first_and_once() -> None:
    rows = [
        call("1", "write_file", {"path": "a.txt"}),
        call("2", "Edit", {"file_path": "b.txt"}),
        call("3", "append_to", {"filename": "a.txt"}),
        call("4", "read_file", {"path": "c.txt"}),
        call("5", "save", {"path": ["d"]}),
        call("6", "save", "{"),
        call("7", "save", "[" * 100_000),
    ]
    assert extracted(None, rows).working_state["files"] == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ('{"exit_code": 0, "stderr": "error"}', "exit 0"),
        ('{"returncode": 2}', "exit 2"),
        ('{"error": "no such file"}', "error"),
        ('{"ok": false}', "error"),
        ('{"status": "error"}', "error"),
        ('{"stdout": "fine"}', "ok"),
        ("fine", "ok"),
        ("", "ok"),
        ("half way\nexit code: 3\nthen on", "ok"),
        ("fine\n\nExit code: 0", "ok"),
        ("lost\n\nExit code: 1", "exit 1"),
        ("[exit code 127]\nnot found", "exit 127"),
        ("Error: no such command", "error"),
        ("Traceback (most recent call last):", "error"),
    ],
)
def test_a_command_is_told_with_how_it_ended(text: str, outcome: str) -> None:
    assert ran(result("1", text)) == f"make [{outcome.replace('exit 0', 'ok')}]"


def test_a_command_without_a_result_did_not_end_well() -> None:
    assert ran(None) == "make [no result]"
    assert ran(result("1", "gone", kind=Kind.INTERRUPTED)) == "make [no result]"


def test_a_result_belongs_to_the_nearest_call_and_the_last_one_counts() -> None:
    rows = [call("x", "bash", {"command": "one"}), result("x", "error: no"), call("x", "bash", {"command": "two"})]
    rows += [result("x", "error"), result("x", "fine")]
    assert extracted(None, rows).working_state["commands"] == ["one [error]", "two [ok]"]


def test_long_commands_are_clipped_and_lists_are_joined() -> None:
    rows = [call("1", "exec", {"command": "x" * 500}), call("2", "terminal", {"command": ["ls", "-l"]})]
    long, short = extracted(None, rows).working_state["commands"]
    assert long == "x" * 159 + "… [no result]"
    assert short == "ls -l [no result]"


def test_artifacts_and_tools_are_named() -> None:
    rows = [
        call("1", "publish_page", {"title": "Plan"}),
        call("2", "create_artifact", {"path": "plan.html"}),
        call("3", "deploy", {}),
        call("4", "look"),
    ]
    found = extracted(None, rows).working_state
    assert found["artifacts"] == ["create_artifact: plan.html", "publish_page: Plan"]
    assert found["tools"] == ["create_artifact", "deploy", "look", "publish_page"]


def test_only_what_people_wrote_to_the_bot_is_kept_in_their_words() -> None:
    rows = [
        user("never  deploy\non Fridays"),
        bot("noted"),
        user("report", kind=Kind.ANNOUNCEMENT),
        user("/new", kind=Kind.COMMAND),
        user("gone", marks=frozenset({Mark.DELETED})),
        user(" "),
        user("see", media=(MediaRef(ref="m1", kind="image"), MediaRef(ref="m2", kind="audio"))),
        replace(user(), content=[{"type": "image_url", "image_url": {"url": "x"}}]),
    ]
    assert list(extracted(None, rows).user_messages) == ["never deploy on Fridays", "see [image] [audio]", "[image]"]


def test_a_long_message_is_clipped_between_characters() -> None:
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    said = extracted(None, [user("x" * 597 + family)]).user_messages[0]
    assert said == "x" * 597 + "…"
    assert len(extracted(None, [user("y" * 9_000)]).user_messages[0]) == LONGEST_USER_MESSAGE


def test_facts_from_before_stay_and_the_bounds_are_kept() -> None:
    before = CompactionState(
        working_state={"earlier": ["e"], "odd": ["o"], "files": [f"f{n}" for n in range(MOST_FILES)]},
        user_messages=[str(n) for n in range(MOST_USER_MESSAGES)],
        user_messages_dropped=5,
    )
    found = extracted(before, [call("1", "write", {"path": "new"}), user("a"), user("b")])
    assert (found.working_state["earlier"], found.working_state["odd"]) == (["e"], ["o"])
    assert found.working_state["files"] == ["new", *(f"f{n}" for n in range(MOST_FILES - 1))]
    assert list(found.user_messages) == [*(str(n) for n in range(2, MOST_USER_MESSAGES)), "a", "b"]
    assert found.dropped == 7


def test_nothing_is_known_of_no_rows() -> None:
    assert extracted(None, []) == ({}, [], 0)


@given(st.lists(st.integers(1, 12), min_size=3, max_size=3))
def test_three_compactions_lose_no_file_and_no_command_within_the_bounds(sizes: list[int]) -> None:
    state, files, commands = None, [], []
    for part, size in enumerate(sizes):
        rows = []
        for n in range(size):
            files.append(f"{part}-{n}.txt")
            commands.append(f"make {part}-{n} [ok]")
            rows += [call("w", "write_file", {"path": files[-1]}), result("w")]
            rows += [call("r", "run_shell", {"command": f"make {part}-{n}"}), result("r")]
        state = state_of(extracted(state, rows))
        assert state.working_state["files"] == files[: -MOST_FILES - 1 : -1]
        assert state.working_state["commands"] == commands[-MOST_COMMANDS:]


@given(any_rows, st.integers(0, 24))
@settings(max_examples=200)
def test_two_compactions_know_what_one_would(rows: list[Message], cut: int) -> None:
    rows = [replace(row, tool_calls=()) for row in rows]
    once = extracted(None, rows)
    assert extracted(state_of(extracted(None, rows[:cut])), rows[cut:]) == once


def test_constraints_of_a_long_chat_stand_in_the_state_until_forty_newer_messages() -> None:
    state = CompactionState()
    for part in range(8):
        said = numbered([user(f"{part}-{n}") for n in range(5)])
        state = state_of(extracted(state, said))
    assert len(state.user_messages) == MOST_USER_MESSAGES
    assert (state.user_messages[0], state.user_messages_dropped) == ("0-0", 0)
