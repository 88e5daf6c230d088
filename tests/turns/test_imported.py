"""An imported chat goes on where it stopped: its next turn sends what the ancestor would have, but for its faults."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path

from gateway.domain.keys import Route
from gateway.domain.message import Role
from gateway.sessions.moving import Importer
from gateway.store.nanobot.reader import NanobotSource
from gateway.store.openworker.reader import OpenworkerSource
from tests.clock import ManualClock
from tests.store.nanobot.nanobot_tree import Tree, assistant, user
from tests.store.openworker import openworker_tree as openworker
from tests.turns.conftest import Rig

CHAT = Route("telegram", "111")


async def imported(rig: Rig, tree: Tree) -> None:
    source = NanobotSource(tree.workspace, zone=UTC, now=ManualClock().now())
    (taken,) = await Importer(rig.store.sessions, rig.media, most_bytes=10_000).take_in(source)
    assert taken.outcome.value == "imported"


def sent(rig: Rig) -> list[tuple[str, str]]:
    """Return role and text of what the model was sent at last."""
    return [(one.role.value, one.text) for one in rig.model.requests[-1].messages]


async def test_a_chat_of_nanobots_goes_on_with_its_history(rig: Rig, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "nanobot")
    call = {"id": "c1", "type": "function", "function": {"name": "exec", "arguments": '{"command": "ls"}'}}
    tree.session(
        "telegram:111",
        user("/status", _command=True),
        user("what is here?\n\n[context]\nCurrent Time: 10:00\n[/context]", _runtime_context={
            "version": 1, "sources": ["time"], "suffix": "[context]\nCurrent Time: 10:00\n[/context]",
        }),
        assistant("", tool_calls=[call]),
        {"role": "tool", "tool_call_id": "c1", "name": "exec", "content": "a.txt"},
        assistant("One file: a.txt."),
        assistant("The build broke.", _channel_delivery=True),
        user("look", media=["/gone/pic.png"], cli_apps=[{"name": "GH", "entry_point": "gh"}]),
        assistant("I see."),
    )  # fmt: skip
    await imported(rig, tree)
    rig.model.window = 20_000
    await rig.turn("and now?", 1, route=CHAT)
    assert sent(rig) == [
        ("user", "what is here?\n\n[context]\nCurrent Time: 10:00\n[/context]"),
        ("assistant", ""),
        ("tool", "a.txt"),
        # Neighbours of one role are joined, and no path and no moment of a server is sent.
        ("assistant", "One file: a.txt.\n\nThe build broke."),
        ("user", "look\n[image: pic.png · not kept, cannot be viewed]\n"
                 "[CLI App Attachment: @gh; tool=run_cli_app; entry_point=gh]"),
        ("assistant", "I see."),
        ("user", "and now?"),
    ]  # fmt: skip


async def test_what_nanobot_had_summed_up_is_sent_as_its_summary(rig: Rig, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "nanobot")
    rows = [turn for n in range(4) for turn in (user(f"q{n}"), assistant(f"a{n}"))]
    summary = {"text": "They talked about Norway.", "last_active": "2026-07-01T12:00:00"}
    tree.session("telegram:111", *rows, metadata={"_last_summary": summary}, last_consolidated=4)
    await imported(rig, tree)
    rig.model.window = 20_000
    await rig.turn("and now?", 1, route=CHAT)
    first, *rest = sent(rig)
    assert "They talked about Norway." in first[1]
    assert "q1" not in first[1]
    assert first[1].endswith("\n\nq2")
    assert rest == [("assistant", "a2"), ("user", "q3"), ("assistant", "a3"), ("user", "and now?")]


async def test_a_late_orphan_result_does_not_cost_an_imported_chat_its_past(rig: Rig, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "nanobot")
    stray = {"role": "tool", "tool_call_id": "x", "content": "late"}
    tree.session("telegram:111", user("u1"), assistant("a1"), user("u2"), stray, assistant("a2"))
    await imported(rig, tree)
    await rig.turn("u3", 1, route=CHAT)
    assert [text for _, text in sent(rig)] == ["u1", "a1", "u2", "a2", "u3"]


async def test_a_report_of_a_subagent_is_told_as_a_report_and_its_task_never_as_its_result(
    rig: Rig, tmp_path: Path
) -> None:
    report = "[Subagent 'Phase1' failed]\n\nTask: find out.\n\nResult:\n\ngh is missing.\n\nSummarize this naturally."
    tree = Tree(tmp_path / "nanobot")
    tree.session("telegram:111", user("go"), assistant(report, injected_event="subagent_result", subagent_task_id="t1"))
    await imported(rig, tree)
    await rig.turn("well?", 1, route=CHAT)
    ((role, text),) = sent(rig)
    assert role == Role.USER
    assert text.startswith("go\n\n[announcement: Phase1 · failed]\n\nTask:\nfind out.\n\nResult:\ngh is missing.")
    assert "Summarize" not in text


async def test_an_openworker_session_goes_on_once_it_is_attached_to_a_chat(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "coworker").mkdir()
    tree = openworker.Tree(tmp_path / "coworker")
    rows = [{"role": "system", "content": "You are a coworker."}]
    rows += [{"role": role, "content": f"{role} {n}"} for n in range(3) for role in ("user", "assistant")]
    state = {"boundary_index": 3, "summary_text": "They planned.", "working_state": "files: a.py"}

    tree.session("a" * 32, rows, compaction=json.dumps(state))
    source = OpenworkerSource(tmp_path / "coworker", now=ManualClock().now())
    await Importer(rig.store.sessions, rig.media, most_bytes=10_000).take_in(source)
    await rig.store.sessions.attach("a" * 32, CHAT.key)
    rig.model.window = 20_000
    await rig.turn("go on", 1, route=CHAT)
    first, *rest = sent(rig)
    assert "They planned." in first[1]
    assert "a.py" in first[1]
    assert first[1].endswith("\n\nuser 1")
    assert rest == [("assistant", "assistant 1"), ("user", "user 2"), ("assistant", "assistant 2"), ("user", "go on")]
