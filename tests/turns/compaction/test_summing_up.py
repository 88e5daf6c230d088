"""Long conversations are summed up in time, and go on with what matters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.domain.message import Kind, MediaRef, Message, Role, ToolCall
from gateway.domain.session import Session
from gateway.ports.model import ToolCallRequested
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec
from tests.stores import open_engine
from tests.turns.conftest import Rig
from tests.turns.summing import Summing, model, state_of, talk


async def test_a_conversation_is_summed_up_before_it_is_cut(rig: Rig) -> None:
    await rig.turn("RULE-1: never on Fridays", 1_000)
    session_id = await talk(rig, 30)
    session = await rig.store.sessions.get(session_id)
    assert len(model(rig).asked_for_summaries) >= 1
    assert session.consolidated_through > 0
    assert "RULE-1" in (await state_of(rig, session_id)).summary_text
    first = model(rig).requests[-1].messages[0]
    assert first.text.startswith("[compacted: ")
    assert "RULE-1" in first.text
    assert all(sum(one.tokens or 0 for one in request.messages) <= 1_000 for request in model(rig).requests)


async def test_the_transcript_is_untouched_and_the_spot_is_marked_for_people_only(rig: Rig) -> None:
    session_id = await talk(rig, 30)
    rows = list(await rig.store.sessions.page(session_id, limit=1_000))
    assert [row.text.split()[0] for row in rows if row.role is Role.USER] == [f"q{n}" for n in range(30)]
    marks = [row for row in rows if row.kind is Kind.COMPACTED]
    assert 1 <= len(marks) <= len(model(rig).asked_for_summaries)
    assert not [one for request in model(rig).requests for one in request.messages if "summed up here" in one.text]
    assert not [text for text in await rig.sent() if not text.startswith("answer to")]


async def test_the_cost_of_summaries_is_counted_and_not_taken_for_that_of_the_history(rig: Rig) -> None:
    session_id = await talk(rig, 30)
    latest = await rig.store.turns.latest_usage(session_id)
    assert latest is not None
    assert latest.counted_tokens > 0
    assert latest.input_tokens != 7


async def test_a_second_compaction_folds_the_first_in_and_loses_no_file_and_no_rule(rig: Rig) -> None:
    session_id = await rig.turn("RULE-7: keep it short", 5_000)
    call = ToolCall(id="c1", name="write_file", arguments='{"path": "notes/plan.md"}')
    await rig.store.sessions.append(
        session_id,
        [
            Message(role=Role.ASSISTANT, tool_calls=(call,)),
            Message(role=Role.TOOL, content="ok", tool_call_id="c1", name="write_file"),
            Message(role=Role.ASSISTANT, content="written"),
        ],
    )
    await talk(rig, 80)
    assert len(model(rig).asked_for_summaries) >= 2
    block = model(rig).requests[-1].messages[0].text
    assert "RULE-7" in block
    assert "notes/plan.md" in block


async def test_compaction_can_be_switched_off(rig: Rig) -> None:
    options = rig.options.model_copy(update={"compaction": False})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    session_id = await talk(rig, 30)
    assert model(rig).asked_for_summaries == []
    assert (await rig.store.sessions.get(session_id)).consolidated_through == 0


async def test_another_model_can_sum_up(rig: Rig) -> None:
    options = rig.options.model_copy(update={"compaction_model": "fake:small"})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    await talk(rig, 30)
    assert {request.model for request in model(rig).asked_for_summaries} == {"fake:small"}


@pytest.mark.timeout(900)
async def test_two_thousand_turns_with_a_summariser_that_fails_at_random_keep_every_rule_and_stay_flat(
    rig: Rig, proving: bool
) -> None:
    chance = random.Random(5)
    model(rig).window = 4_000
    model(rig).fails = lambda: chance.random() < 0.25
    turns = 2_000 if proving else 250
    rules, sizes = [], []
    for n in range(turns):
        text = f"q{n} " + "word " * chance.randrange(5, 40)
        if n % 29 == 0:
            rules.append(f"RULE-{n}")
            text = f"{rules[-1]} from now on. {text}"
        session_id = await rig.turn(text, n)
        if n % 7 == 0:
            call = ToolCall(id=f"c{n}", name="exec", arguments='{"command": "ls"}')
            await rig.store.sessions.append(
                session_id,
                [
                    Message(role=Role.USER, kind=Kind.ANNOUNCEMENT, content=f"build {n} is done"),
                    Message(role=Role.ASSISTANT, tool_calls=(call,)),
                    Message(role=Role.TOOL, content="ok " * chance.randrange(40), tool_call_id=call.id, name="exec"),
                    Message(role=Role.ASSISTANT, content="seen"),
                ],
            )
        if n % 11 == 0:
            picture = MediaRef(ref=f"m_{n}", kind="image", name=f"plan-{n}.png", width=2_000, height=1_000)
            seen = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
            await rig.store.sessions.append(
                session_id,
                [
                    Message(role=Role.USER, content=f"look {n}", media=(picture,)),
                    Message(role=Role.USER, content=[{"type": "text", "text": "and at this"}, seen]),
                    Message(role=Role.ASSISTANT, content="two pictures"),
                ],
            )
        sizes.append(sum(one.tokens or 0 for one in model(rig).requests[-1].messages))
    assert max(sizes) <= 3_900
    early, late = sizes[turns // 4 : turns // 2], sizes[turns // 2 :]
    assert sum(late) / len(late) <= 1.3 * sum(early) / len(early)
    sent = "\n".join(one.text for one in model(rig).requests[-1].messages)
    assert [rule for rule in rules if rule not in sent] == []
    assert all(text.startswith(("answer to", "(This conversation")) for text in await rig.sent())


async def test_every_compaction_that_is_told_of_is_told_how_it_ended(rig: Rig) -> None:
    chance = random.Random(1)
    model(rig).fails = lambda: chance.random() < 0.5
    await talk(rig, 60)
    told = [kind for kind in rig.told() if kind.startswith("compact")]
    assert told
    assert told[::2] == ["compacting"] * (len(told) // 2)
    assert "compacting" not in told[1::2]


async def test_a_compaction_inside_a_long_turn_keeps_its_newest_rounds_and_its_question_whole(rig: Rig) -> None:
    question = "do it all " + "word " * 200 + " MUST-NOT-DELETE"
    calls = [[ToolCallRequested(f"call-{n:030d}", "look", '{"n": 1}')] for n in range(15)]
    rig.model.steps = [*calls, "done"]
    tools = Looker()
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, tools=tools)
    await rig.turn(question, 1)
    assert (await rig.sent())[-1] == "done"
    assert len(tools.results) == 15
    for number, request in enumerate(model(rig).requests):
        text = "\n".join(one.text for one in request.messages)
        assert "MUST-NOT-DELETE" in text, number
        if number:
            assert tools.results[number - 1] in text
        assert sum(one.tokens or 0 for one in request.messages) <= 1_000
    assert model(rig).asked_for_summaries


class Looker(Tools):
    """One tool whose results are long, and each another one."""

    def __init__(self) -> None:
        self.results: list[str] = []

    async def specs(self, session: Session) -> Sequence[ToolSpec]:
        return [ToolSpec(name="look", description="Looks.", schema={"type": "object"})]

    async def call(self, call: ToolCall, context: ToolContext) -> ToolResult:
        self.results.append(f"result-{len(self.results)} " + "seen " * 80)
        return ToolResult(text=self.results[-1])


async def test_what_is_sent_besides_the_history_is_no_reason_to_compact(rig: Rig) -> None:
    options = rig.options.model_copy(update={"system_prompt": "word " * 800})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    await talk(rig, 12)
    assert model(rig).asked_for_summaries == []


async def test_a_compaction_is_worth_its_call(rig: Rig) -> None:
    options = rig.options.model_copy(update={"system_prompt": "word " * 300})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    await talk(rig, 60)
    assert 1 <= len(model(rig).asked_for_summaries) <= 30


async def test_what_a_compaction_left_behind_comes_along_to_another_store(rig: Rig, tmp_path: Path) -> None:
    session_id = await talk(rig, 30)
    (tmp_path / "second").mkdir()
    async with open_engine("sqlite", tmp_path / "second", rig.clock) as second:
        await second.sessions.restore(await rig.store.sessions.copy(session_id))
        other = Rig(second, rig.clock, Summing(window=1_100), rig.policy, rig.media)
        await other.turn("and now?", 999)
        first, second_first = (one.requests[-1].messages[0].text for one in (model(rig), model(other)))
        assert second_first.split("\n\n")[:2] == first.split("\n\n")[:2]


async def test_a_picture_weighs_the_same_whatever_its_size(rig: Rig) -> None:
    model(rig).window = 20_000
    session_id = await rig.turn("hi", 1)
    block = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_400_000}}
    await rig.store.sessions.append(session_id, [Message(role=Role.USER, content=[block])])
    await talk(rig, 5, first=10)
    assert model(rig).asked_for_summaries == []
