"""Importing from openworker: what its rows become."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.message import Kind, MediaRef, Message, Role, ToolCall
from gateway.ports.moving import LocalFile
from tests.store.openworker.openworker_tree import (
    ASKED_AT,
    CALL,
    ONE,
    PICTURE,
    PICTURE_URL,
    USED_AT,
    Tree,
    copy_of,
    only,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "coworker")


def row(tree: Tree, raw: Any) -> Message:
    """Return what one row becomes."""
    tree.session(ONE, [raw])
    return copy_of(only(tree)).rows[0]


def test_rows_keep_their_order_and_every_field(tree: Tree) -> None:
    tree.session(ONE)
    assert copy_of(only(tree)).rows == [
        Message(role=Role.SYSTEM, kind=Kind.NOTICE, content="You are a coworker.", seq=1, created_at=USED_AT),
        Message(
            role=Role.USER, content="What is here?", seq=2, created_at=ASKED_AT, extra={"source": {"platform": "slack"}}
        ),
        Message(
            role=Role.ASSISTANT,
            tool_calls=(ToolCall(id="c1", name="run_shell", arguments='{"command": "ls"}'),),
            reasoning_content="I should look.",
            seq=3,
            created_at=ASKED_AT + timedelta(seconds=0.5),
        ),
        Message(role=Role.TOOL, content="a.txt", tool_call_id="c1", name="run_shell", seq=4, created_at=USED_AT),
        Message(
            role=Role.ASSISTANT,
            content="One file.",
            seq=5,
            created_at=datetime(2026, 7, 1, 10, 0, 5, tzinfo=UTC),
            extra={"usage": {"input": 7}, "_display": "d"},
        ),
        Message(
            role=Role.SYSTEM,
            kind=Kind.COMPACTED,
            content="Earlier turns were summarized.",
            seq=6,
            created_at=datetime(2026, 7, 1, 10, 0, 10, tzinfo=UTC),
        ),
        Message(role=Role.USER, content="Thanks", seq=7, created_at=USED_AT),
    ]


def test_a_session_without_times_gets_the_one_of_its_index(tree: Tree) -> None:
    tree.session(ONE, [{"role": "user", "content": "hi", "ts": "yesterday"}])
    kept = copy_of(only(tree))
    assert (kept.session.created_at, kept.session.updated_at, kept.rows[0].created_at) == (USED_AT, USED_AT, USED_AT)
    assert kept.rows[0].extra == {"ts": "yesterday"}


@pytest.mark.parametrize("ts", [float("inf"), 1e300, -1e300, True, [], "0001-01-01T00:00:00+14:00", "x"])
def test_a_time_that_is_none_costs_nothing_else(tree: Tree, ts: Any) -> None:
    kept = row(tree, {"role": "user", "content": "hi", "ts": ts})
    assert (kept.content, kept.created_at) == ("hi", USED_AT)
    assert "ts" in kept.extra


def test_a_picture_is_taken_out_of_its_row_as_a_file(tree: Tree) -> None:
    blocks = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": PICTURE_URL}},
        {"type": "image_url", "image_url": "DATA:image/svg+xml,%3Csvg/%3E"},
    ]
    tree.session(ONE, [{"role": "user", "content": blocks}])
    found = only(tree)
    kept = copy_of(found).rows[0]
    assert kept.content == "look"
    assert kept.media == (
        MediaRef(ref="file:1", kind="image", mime="image/png", size_bytes=len(PICTURE)),
        MediaRef(ref="file:2", kind="image", mime="image/svg+xml", size_bytes=6),
    )
    assert found.files == {"file:1": LocalFile(data=PICTURE), "file:2": LocalFile(data=b"<svg/>")}


@pytest.mark.parametrize(
    "url", ["data:image/png;base64,%%%", "data:image/png;base64,", "data:image/png", "data:,", "data:;base64,é"]
)
def test_a_picture_that_cannot_be_decoded_keeps_its_place(tree: Tree, url: str) -> None:
    tree.session(ONE, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}])
    found = only(tree)
    kept = copy_of(found).rows[0]
    assert (kept.content, [ref.ref for ref in kept.media], found.files) == ("", [""], {})
    assert list(found.repairs) == ["row 1: a picture that cannot be decoded, only its place is kept"]


def test_blocks_that_are_no_text_and_no_picture_of_ours_stay(tree: Tree) -> None:
    linked = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    paper = {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA=="}}
    embedded = {"type": "image_url", "image_url": {"url": PICTURE_URL}}
    kept = row(tree, {"role": "user", "content": [linked, embedded, paper, "words", 5]})
    assert kept.content == [linked, paper, {"type": "text", "text": "words"}]
    assert len(kept.media) == 1
    assert kept.extra == {"content": [5]}


def test_blocks_of_text_alone_stay_blocks(tree: Tree) -> None:
    blocks = [{"type": "text", "text": "a"}]
    assert row(tree, {"role": "user", "content": blocks}).content == blocks


def test_calls_that_cannot_be_answered_are_kept_beside_the_others(tree: Tree) -> None:
    nameless: list[Any] = [{"id": "c2"}, {"function": {"name": "x"}}, 5, {"id": 7, "function": {"name": "x"}}]
    bare = {"id": "c3", "function": {"name": "y", "arguments": {"a": "é"}}}
    none = {"id": "c4", "function": {"name": "z", "arguments": None}}
    kept = row(tree, {"role": "assistant", "content": "", "tool_calls": [CALL, *nameless, bare, none]})
    assert [(call.id, call.arguments) for call in kept.tool_calls] == [
        ("c1", '{"command": "ls"}'),
        ("c3", '{"a": "é"}'),
        ("c4", "{}"),
    ]
    assert kept.extra == {"tool_calls": nameless}


def test_reasoning_is_kept_whatever_its_shape(tree: Tree) -> None:
    kept = row(tree, {"role": "assistant", "content": "a", "reasoning": [{"id": 1}], "reasoning_content": "why"})
    assert (kept.reasoning_content, kept.extra) == ("why", {"reasoning": [{"id": 1}]})
    tree.file(ONE, [{"role": "assistant", "content": "a", "reasoning": "how", "reasoning_content": "why"}])
    both = copy_of(only(tree)).rows[0]
    assert (both.reasoning_content, both.extra) == ("why", {"reasoning": "how"})


def test_notices_are_seen_and_replayed_to_no_model(tree: Tree) -> None:
    kept = row(tree, {"role": "notice", "kind": "error", "text": "It failed.", "ts": 1782900000})
    assert (kept.role, kept.kind, kept.content) == (Role.SYSTEM, Kind.NOTICE, "It failed.")
    assert kept.extra == {"kind": "error"}


@pytest.mark.parametrize("role", ["wizard", None, 5, ["user"], {}])
def test_a_row_of_an_unknown_role_becomes_a_notice_that_holds_it_whole(tree: Tree, role: Any) -> None:
    raw = {"role": role, "content": "abra", "spell": [1]}
    kept = row(tree, raw)
    assert (kept.role, kept.kind, kept.content, kept.extra) == (Role.SYSTEM, Kind.NOTICE, "abra", {"raw": raw})


@pytest.mark.parametrize("value", [5, True, 1.5])
def test_a_field_of_another_type_is_kept_beside_the_row(tree: Tree, value: Any) -> None:
    raw = {"role": "tool", "content": value, "tool_call_id": value, "name": value}
    kept = row(tree, raw)
    assert (kept.content, kept.tool_call_id, kept.name) == (None, None, None)
    assert kept.extra == {"content": value, "tool_call_id": value, "name": value}


def test_every_text_of_a_row_is_one_that_json_can_hold(tree: Tree) -> None:
    kept = row(tree, {"role": "user", "content": "\ud83d\ude00 \ud83d", "x": float("inf")})
    assert kept.content == "\U0001f600 \ufffd"
    json.dumps(dict(kept.extra), allow_nan=False)
