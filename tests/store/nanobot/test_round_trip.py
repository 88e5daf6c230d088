"""Whatever a session holds, nanobot can read it, and an import gives back what its format can hold."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.compaction import CompactionState
from gateway.domain.keys import SessionKey
from gateway.domain.message import Attachment, Kind, Mark, MediaRef, Message, Role, Sender, ToolCall
from gateway.domain.sanitize import without_thinking
from gateway.domain.session import Session
from gateway.domain.titles import TitleSource
from gateway.ports.sessions import SessionCopy
from gateway.store.nanobot.reader import NanobotSource
from gateway.store.nanobot.writer import nanobot_file
from tests.store.nanobot.written import (
    NOON,
    ZONES,
    path_of,
    rows_it_would_forget,
    strictly_read,
    without_context,
)
from tests.store.strategies import built, copies, leaves, moments, texts, unhurried, words

# What a session of nanobot's can hold at all, beside what it cannot.
ids = st.sampled_from(["c1", "c2"])
apps = st.builds(
    lambda name, entry: Attachment(
        kind="CLI App", name=name, details={"tool": "run_cli_app", "entry_point": entry, "skill": "s"}
    ),
    st.sampled_from(["git", "a b"]),
    st.sampled_from(["/bin/git", "unknown"]),
)
sendable = built(
    Message,
    {
        "role": st.sampled_from(Role),
        "content": st.none() | words | st.lists(st.builds(lambda text: {"type": "text", "text": text}, words)),
        "created_at": moments,
    },
    kind=st.sampled_from(Kind),
    tool_calls=st.lists(st.builds(ToolCall, id=ids, name=st.just("look"), arguments=texts), max_size=2).map(tuple),
    tool_call_id=ids | st.just(""),
    name=texts,
    reasoning_content=texts,
    thinking_blocks=st.lists(st.dictionaries(texts, leaves, max_size=2), max_size=2).map(tuple),
    turn_id=texts,
    sender=st.builds(Sender, id=texts, name=texts),
    media=st.lists(
        st.builds(MediaRef, ref=st.sampled_from(["", "m"]), kind=st.just("image"), name=st.just("cat.png")), max_size=2
    ).map(tuple),
    attachments=st.lists(apps | st.just(Attachment(kind="Poll", name="x")), max_size=2).map(tuple),
    runtime_context=texts,
    marks=st.sampled_from([frozenset(), frozenset({Mark.UNDONE})]),
    extra=st.dictionaries(st.sampled_from(["latency_ms", "cron_job_id", "é", "content", "_type"]), leaves, max_size=2),
)
keys = st.builds(
    SessionKey,
    st.sampled_from(["slack", "telegram", "console", "http"]),
    st.sampled_from(["local", "C1", "a:b", "-100 é", "%"]),
    st.sampled_from([None, "7", "1700.1", "a:b"]),
)


def kept(copy: SessionCopy) -> list[Message]:
    """State again which rows nanobot is given."""
    rows = [
        row for row in copy.rows if not row.marks and row.kind.value in ("chat", "command", "delivery", "announcement")
    ]
    called: set[str] = set()
    given = []
    for one in rows:
        if one.role is Role.ASSISTANT:
            called |= {call.id for call in one.tool_calls}
        if one.role is not Role.TOOL or not one.tool_call_id or one.tool_call_id in called:
            given.append(one)
    return given


def projected_row(row: Message) -> dict[str, Any]:
    """Return all of a row that goes through nanobot's format and back."""
    content = row.content if row.content or row.content is None else ""
    if row.runtime_context and content is None:
        content = ""
    is_announced = row.kind is Kind.ANNOUNCEMENT
    is_plain_system = row.role is Role.SYSTEM and row.kind is Kind.CHAT
    bookkeeping = {"injected_event", "_runtime_context", "role", "announcement", "content", "_type"}
    return {
        "role": Role.USER if is_announced else row.role,
        "kind": Kind.NOTICE if is_plain_system else row.kind,
        "content": content,
        "calls": row.tool_calls,
        "call_id": row.tool_call_id,
        "name": row.name,
        "reasoning": row.reasoning_content,
        "thinking": row.thinking_blocks,
        "created_at": row.created_at,
        "context": row.runtime_context or None,
        "sender": row.sender.id or None if row.sender else None,
        "apps": [one for one in row.attachments if one.kind == "CLI App"],
        "extra": {name: value for name, value in row.extra.items() if name not in bookkeeping},
    }


def projected_header(session: Session, rows: Sequence[Message]) -> dict[str, Any]:
    """Return all of a header that goes through nanobot's format and back."""
    title, source = session.title, session.title_source
    if source is TitleSource.GENERATED:
        title = without_thinking(title)
    if source <= TitleSource.FIRST_LINE or not title.strip():
        title, source = "", TitleSource.NONE
    state = CompactionState.read(session.compaction)
    summary = state.summary_text if state and state.summary_text.strip() else ""
    return {
        "key": session.key,
        "times": (session.created_at, session.updated_at),
        "title": (title, source),
        "summary": summary,
        "consolidated": sum(row.seq <= session.consolidated_through for row in rows),
        "metadata": {
            name: value
            for name, value in session.metadata.items()
            if name not in ("_last_summary", "title", "title_user_edited")
        },
    }


@unhurried
@given(copies(sendable), keys, st.sampled_from(ZONES))
def test_nanobot_can_read_every_export_and_forgets_nothing_of_it(
    copy: SessionCopy, key: SessionKey, zone: tzinfo
) -> None:
    copy = replace(copy, session=replace(copy.session, key=key))
    head, rows = strictly_read(nanobot_file(copy, zone=zone, path_of=path_of).lines)
    assert rows_it_would_forget(rows) == 0
    assert [without_context(row) or "" for row in rows] == [row.content or "" for row in kept(copy)]
    assert head["last_consolidated"] == sum(row.seq <= copy.session.consolidated_through for row in kept(copy))


@unhurried
@given(copies(sendable), keys, st.sampled_from(ZONES))
def test_an_import_of_an_export_gives_what_the_format_can_hold(
    copy: SessionCopy, key: SessionKey, zone: tzinfo
) -> None:
    copy = replace(copy, session=replace(copy.session, key=key))
    file = nanobot_file(copy, zone=zone, path_of=path_of)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory) / "sessions"
        folder.mkdir()
        (folder / file.name).write_text("".join(file.lines), encoding="utf-8", newline="")
        (found,) = NanobotSource(folder, zone=zone, now=NOON).sessions()
    assert (found.repairs, found.problem) == ([], "")
    assert all("cat.png is not there" in note for note in found.notes)
    assert found.copy is not None
    read, given_rows = found.copy, kept(copy)
    assert [projected_row(row) for row in read.rows] == [projected_row(row) for row in given_rows]
    assert projected_header(read.session, read.rows) == projected_header(copy.session, given_rows)
    assert [[one.name for one in row.media] for row in read.rows] == [
        [one.name for one in row.media if one.ref] for row in given_rows
    ]
