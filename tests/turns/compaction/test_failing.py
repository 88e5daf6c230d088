"""Where a summary fails, is stopped or too late, and where a provider refuses: never at the cost of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from gateway.domain.compaction.summarising import INSTRUCTIONS
from gateway.domain.compaction.trimming import TRIM_NOTE
from gateway.domain.keys import Route
from gateway.domain.message import Role
from gateway.domain.turn import Usage
from gateway.ports.model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from tests.stores import count_words
from tests.turns.conftest import Rig
from tests.turns.summing import Summing, model, state_of, talk


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
