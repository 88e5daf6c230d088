"""Replays that are kept worked out: the same as anew, whatever happened in between."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.keys import SessionKey
from gateway.domain.message import Mark, Message, Role
from gateway.domain.replay.pipeline import Replay, Terms
from gateway.ports.sessions import NewSession
from gateway.sessions import replays
from gateway.sessions.manager import SessionManager
from gateway.store import Store
from tests.clock import ManualClock
from tests.stores import count_words, open_engine

KEY = SessionKey("slack", "D1")


def said(*texts: str) -> list[Message]:
    """Return rows that take turns, a person first."""
    return [Message(role=Role.USER if n % 2 == 0 else Role.ASSISTANT, content=text) for n, text in enumerate(texts)]


def texts(replay: Replay) -> list[str]:
    return [message.text for message in replay.messages]


def wire(replay: Replay) -> list[object]:
    """Return what a provider is sent of messages."""
    return [(one.role, one.content, one.tool_calls, one.tool_call_id) for one in replay.messages]


async def test_a_new_row_is_added_to_what_is_kept(store: Store) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said("a", "b"))
    assert texts(await manager.replay(session.id, Terms(budget=1_000))) == ["a", "b"]
    await manager.append(session.id, said("c"))
    assert texts(await manager.replay(session.id, Terms(budget=1_000))) == ["a", "b", "c"]


@pytest.mark.parametrize("change", ["mark", "retire", "clear"])
async def test_a_change_by_another_process_is_seen(store: Store, change: str) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said("a", "b", "c"))
    await manager.replay(session.id, Terms(budget=1_000))
    if change == "mark":
        await store.sessions.mark(session.id, [1, 2], Mark.UNDONE)
    elif change == "retire":
        await store.sessions.retire(session.id, [1, 2], "retention")
    else:
        await store.sessions.clear(session.id)
    assert texts(await manager.replay(session.id, Terms(budget=1_000))) == ([] if change == "clear" else ["c"])


async def test_where_a_replay_begins_is_kept_over_a_restart(store: Store) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said(*(f"word {n}" for n in range(40))))
    first = await manager.replay(session.id, Terms(budget=100))
    assert first.begin == (await manager.get(session.id)).replay_from > 1
    await manager.append(session.id, said("one more"))
    again = await SessionManager(store.sessions, count_words).replay(session.id, Terms(budget=100))
    assert again.begin == first.begin
    assert wire(again)[: len(wire(first))] == wire(first)


async def test_explaining_changes_nothing_and_gives_every_row_a_reason(store: Store) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said(*(f"word {n}" for n in range(40))))
    explained = await manager.explain(session.id, Terms(budget=100))
    assert (await manager.get(session.id)).replay_from == 0
    sent = {message.seq for message in explained.messages}
    assert sent | {left.seq for left in explained.left_out} == set(range(1, 41))
    assert {left.reason for left in explained.left_out} == {"over the token budget"}


async def test_rows_that_a_summary_covers_are_replaced_by_it(store: Store) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said("old", "older", "new"))
    await store.sessions.update(session.id, {"consolidated_through": 2, "compaction": {"summary_text": "They met."}})
    block, *rest = (await manager.replay(session.id, Terms(budget=1_000))).messages
    assert "They met." in block.text
    assert "old" not in block.text.split()
    assert [block.text.endswith("\n\nnew"), len(rest)] == [True, 0]
    assert {left.reason for left in (await manager.explain(session.id, Terms(budget=1_000))).left_out} == {
        "covered by the summary"
    }


async def test_many_sessions_keep_no_more_rows_than_the_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MOST_TOKENS_KEPT", 250)
    manager = SessionManager(store.sessions, count_words)
    for n in range(30):
        session = await manager.open(SessionKey("slack", f"D{n}"))
        await manager.append(session.id, said(*"abcdefgh"))
        await manager.replay(session.id, Terms(budget=1_000))
    assert manager._replays.tokens_kept <= 250


async def test_a_long_session_is_read_no_further_than_the_budget_needs(store: Store) -> None:
    manager = SessionManager(store.sessions, count_words)
    session = await manager.open(KEY)
    await manager.append(session.id, said(*(f"word {n}" for n in range(4_000))))
    sent = await manager.replay(session.id, Terms(budget=600))
    assert len(sent.messages) <= 100
    assert texts(sent)[-1] == "word 3999"


rows = st.lists(st.sampled_from(["user", "assistant", "call", "result", "late"]), min_size=1, max_size=4)


@given(st.lists(st.tuples(rows, st.integers(30, 120)), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_is_kept_gives_what_working_it_out_anew_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: Sequence[tuple[list[str], int]]
) -> None:
    import asyncio

    async def work() -> None:
        async with open_engine("sqlite", tmp_path_factory.mktemp("replays"), ManualClock()) as store:
            kept = SessionManager(store.sessions, count_words)
            session = await store.sessions.open(KEY, NewSession())
            for kinds, budget in steps:
                await kept.append(session.id, [_row(kind) for kind in kinds])
                # A read-only replay first, since the other may move where it begins.
                anew = await SessionManager(store.sessions, count_words).explain(session.id, Terms(budget=budget))
                made = await kept.replay(session.id, Terms(budget=budget))
                assert wire(made) == wire(anew)
                assert made.tokens == anew.tokens <= max(budget, 60)

    asyncio.run(work())


def _row(kind: str) -> Message:
    from gateway.domain.message import ToolCall

    if kind == "call":
        return Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c1", name="look", arguments="{}"),))
    if kind in ("result", "late"):
        return Message(role=Role.TOOL, content=kind, tool_call_id="c1" if kind == "result" else "c2")
    return Message(role=Role(kind), content=f"{kind} says some words")
