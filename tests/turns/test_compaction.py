"""Long conversations: summed up in time, trimmed when that fails, and never at the cost of the answer."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path

import pytest
from loguru import logger

from gateway.domain.compaction.summarising import INSTRUCTIONS
from gateway.domain.compaction.trimming import TRIM_NOTE
from gateway.domain.keys import Route
from gateway.domain.message import Kind, MediaRef, Message, Role, ToolCall
from gateway.domain.session import Session
from gateway.domain.turn import Usage
from gateway.media.files import FileMedia
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from gateway.ports.tools import ToolContext, ToolResult, Tools, ToolSpec
from tests.clock import ManualClock
from tests.stores import count_words, open_engine
from tests.turns.conftest import OPEN, OneRule, Rig
from tests.turns.summing import Summing, model, state_of, talk

RULE = re.compile(r"RULE-\d+")


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    clock = ManualClock()
    async with open_engine("sqlite", tmp_path, clock) as store:
        yield Rig(store, clock, Summing(window=1_100), OneRule(OPEN), FileMedia(tmp_path / "media", store.media))


async def summing_up(rig: Rig) -> tuple[asyncio.Task[None], str]:
    """Talk until a turn waits for its summary, and leave it waiting; return it and its session."""
    model(rig).pause = 3_600
    for n in range(200):
        session_id = await rig.say(f"q{n} " + "word " * 20, n)
        driving = asyncio.create_task(rig.dispatcher.drive(session_id))
        while not driving.done():
            if model(rig).asked_for_summaries:
                return driving, session_id
            await asyncio.sleep(0.001)
    raise AssertionError("no summary was asked for")


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


async def test_a_failing_summariser_is_asked_once_more_and_then_the_oldest_is_left_out_with_one_note(rig: Rig) -> None:
    model(rig).fails = lambda: True
    session_id = await talk(rig, 24)
    assert len(model(rig).asked_for_summaries) >= 2
    state = await state_of(rig, session_id)
    assert state.trimmed
    assert TRIM_NOTE in state.summary_text
    notes = [text for text in await rig.sent() if not text.startswith("answer to")]
    assert len(notes) == len({request.messages[0].text for request in model(rig).asked_for_summaries})
    assert set(notes) == {"(This conversation has become very long: I no longer have its oldest part in mind.)"}
    assert all(text.startswith("answer to") for text in (await rig.sent())[-1:])


async def test_five_hundred_messages_with_a_summariser_that_always_fails_stay_within_the_budget(rig: Rig) -> None:
    """Case B1."""
    model(rig).fails = lambda: True
    await talk(rig, 250)
    newest = model(rig).requests[-1]
    assert newest.messages[-1].text.startswith("q249 ")
    assert sum(one.tokens or 0 for one in newest.messages) <= 1_000


async def test_a_summariser_that_says_nothing_counts_as_failing(rig: Rig) -> None:
    class Silent(Summing):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            if request.system == INSTRUCTIONS:
                self.asked_for_summaries.append(request)
                yield TextDelta("<think>hm</think>  ")
                yield UsageReported(Usage(provider="fake", model="m"))
                yield Finish(FinishReason.STOP)
                return
            async for event in super().stream(request):
                yield event

    rig = Rig(rig.store, rig.clock, Silent(window=1_100), rig.policy, rig.media)
    session_id = await talk(rig, 24)
    assert (await state_of(rig, session_id)).trimmed


async def test_an_overflow_keeps_half_then_sends_less_and_always_ends(rig: Rig) -> None:
    """Case B8 and B10: the same session, an answer, and at most one notice."""
    model(rig).window = 100_000
    session_id = await talk(rig, 40)
    model(rig).limit = 300
    await rig.turn("and now?", 999)
    assert (await rig.store.sessions.get(session_id)).consolidated_through > 0
    assert (await rig.sent())[-1].startswith("answer to and now?")
    assert len([text for text in await rig.sent() if text.startswith("(This conversation")]) <= 1


async def test_a_provider_that_refuses_every_size_is_asked_a_bounded_number_of_times(rig: Rig) -> None:
    await talk(rig, 5)
    model(rig).limit = 0
    before = len(model(rig).requests)
    await rig.turn("and now?", 999)
    assert len(model(rig).requests) - before <= 10
    assert "reference" in (await rig.sent())[-1]


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


async def test_compact_by_hand_sums_up_and_says_so(rig: Rig) -> None:
    session_id = await talk(rig, 8)
    assert model(rig).asked_for_summaries == []
    asked = len(model(rig).requests)
    await rig.turn("/compact", 999)
    assert len(model(rig).requests) == asked
    assert (await rig.sent())[-1] == "Earlier messages were summed up here, so that the conversation can go on."
    assert (await rig.store.sessions.get(session_id)).consolidated_through > 0
    await rig.turn("and now?", 1_000)
    sent = model(rig).requests[-1].messages
    assert sent[0].text.startswith("[compacted: ")
    assert not [one for one in sent if "/compact" in one.text]


async def test_compact_by_hand_works_where_it_is_switched_off_and_tells_when_there_is_nothing_to_do(rig: Rig) -> None:
    options = rig.options.model_copy(update={"compaction": False})
    rig = Rig(rig.store, rig.clock, rig.model, rig.policy, rig.media, options=options)
    await rig.turn("!Compact", 1)
    assert await rig.sent() == ["There is nothing to sum up yet."]
    await talk(rig, 8, first=10)
    await rig.turn("/compact", 2)
    assert (await rig.sent())[-1].startswith("Earlier messages were summed up")


async def test_talk_about_the_command_is_talk(rig: Rig) -> None:
    await rig.turn("what does /compact do?", 1)
    assert (await rig.sent())[-1].startswith("answer to what does")


async def test_a_command_for_another_bot_is_talk(rig: Rig) -> None:
    await rig.turn("/compact@other_bot", 1)
    assert (await rig.sent())[-1] == "answer to /compact@other_bot"


async def test_talk_and_the_command_in_one_turn_are_both_seen_to(rig: Rig) -> None:
    await talk(rig, 8)
    await rig.say("/compact", 998)
    await rig.turn("and now?", 999)
    assert [text[:20] for text in (await rig.sent())[-2:]] == ["Earlier messages wer", "answer to and now?"]


async def test_a_dead_summariser_is_asked_in_one_turn_no_more_than_twice_and_each_round_still_fits(rig: Rig) -> None:
    """Where the second ancestor made 22 calls and 21 notices."""
    await talk(rig, 12)
    model(rig).fails = lambda: True
    calls = [[ToolCallRequested(f"c{n}", "look", "{}")] for n in range(10)]
    rig.model.steps = [*calls, "done"]
    before = len(await rig.sent())
    await rig.turn("q " + "word " * 300, 999)
    assert len(model(rig).asked_for_summaries) <= 2
    assert len([text for text in (await rig.sent())[before:] if text.startswith("(This conversation")]) <= 1
    assert (await rig.sent())[-1] == "done"


async def test_a_summariser_that_takes_less_than_it_is_known_for_is_given_halves(rig: Rig) -> None:
    """Case B8: the compaction request itself overflows."""
    model(rig).takes = 500
    await rig.turn("RULE-3: never on Fridays", 5_000)
    session_id = await talk(rig, 30)
    state = await state_of(rig, session_id)
    assert not state.trimmed
    assert "RULE-3" in state.summary_text


async def test_a_request_for_a_summary_is_never_larger_than_its_model_takes(rig: Rig) -> None:
    for n in range(90):
        await rig.turn(f"q{n} " + "слово " * 60, n)
    sizes = [
        count_words(request.messages[0].text) + count_words(INSTRUCTIONS) for request in model(rig).asked_for_summaries
    ]
    assert sizes
    assert max(sizes) <= model(rig).window
    assert all(request.max_output == 3_000 and not request.tools for request in model(rig).asked_for_summaries)


async def test_every_compaction_that_is_told_of_is_told_how_it_ended(rig: Rig) -> None:
    heard: list[str] = []
    sink = logger.add(
        lambda line: heard.append(line.record["message"]), level="INFO", filter="gateway.turns.compacting"
    )
    chance = random.Random(1)
    model(rig).fails = lambda: chance.random() < 0.5
    await talk(rig, 60)
    logger.remove(sink)
    told = [word for word in heard if word in ("compacting", "compacted", "skipped", "failed")]
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


async def test_rows_that_are_cleared_while_a_summary_is_made_do_not_come_back_by_it(rig: Rig) -> None:
    session_id = await talk(rig, 10)

    def clears() -> bool:
        cleared.append(asyncio.ensure_future(rig.store.sessions.clear(session_id)))
        return False

    cleared: list[asyncio.Future[int]] = []
    model(rig).fails = clears
    model(rig).pause = 0.05
    await talk(rig, 12, first=50)
    assert cleared
    await asyncio.gather(*cleared)
    await rig.turn("and now?", 999)
    text = "\n".join(one.text for one in model(rig).requests[-1].messages)
    assert "q3 " not in text


async def test_a_summariser_that_breaks_in_a_way_nobody_foresaw_costs_the_summary_only(rig: Rig) -> None:
    def breaks() -> bool:
        raise ValueError("what is this?")

    model(rig).fails = breaks
    await talk(rig, 30)
    assert (await rig.sent())[-1].startswith("answer to q29")


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


async def test_a_turn_that_is_stopped_over_a_summary_is_gone_on_with_and_sums_up_then(rig: Rig) -> None:
    driving, session_id = await summing_up(rig)
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)
    assert (await rig.store.sessions.get(session_id)).consolidated_through == 0
    asked = [row.text for row in await rig.rows(session_id) if row.role is Role.USER][-1]
    model(rig).pause = 0
    await rig.new_dispatcher("two").drive(session_id)
    assert (await rig.sent())[-1] == f"answer to {asked.strip()}"
    assert (await rig.store.sessions.get(session_id)).consolidated_through > 0


async def test_another_chat_is_answered_while_one_is_summed_up(rig: Rig) -> None:
    """Case B11."""
    driving, _ = await summing_up(rig)
    await rig.turn("hello", 1_000, route=Route("slack", "D2"))
    assert (await rig.sent())[-1] == "answer to hello"
    driving.cancel()
    await asyncio.gather(driving, return_exceptions=True)


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


async def test_a_provider_that_takes_less_than_it_is_known_for_is_remembered(rig: Rig) -> None:
    model(rig).window = 100_000
    await talk(rig, 40)
    model(rig).limit = 400
    await rig.turn("first", 998)
    before = len(model(rig).requests)
    for n in range(5):
        await rig.turn(f"again {n}", 1_000 + n)
    assert len(model(rig).requests) - before <= 7


async def test_what_a_provider_refused_in_one_session_takes_nothing_from_another(rig: Rig) -> None:
    model(rig).window = 100_000
    other = Route("slack", "D2")
    for n in range(40):
        await rig.turn(f"q{n} " + "word " * 20, n, route=other)
    await talk(rig, 40, first=100)
    model(rig).limit = 400
    await rig.turn("first", 998)
    model(rig).limit = None
    await rig.turn("and here?", 999, route=other)
    assert model(rig).requests[-1].messages[0].text.startswith("q0 ")
