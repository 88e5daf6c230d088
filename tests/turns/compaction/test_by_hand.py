"""`/compact`, by hand."""

from __future__ import annotations

from tests.turns.conftest import Rig
from tests.turns.summing import model, talk


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


async def test_a_summary_asked_for_that_cannot_be_had_costs_nothing_of_the_conversation(rig: Rig) -> None:
    session_id = await talk(rig, 8)
    model(rig).fails = lambda: True
    await rig.turn("/compact", 999)
    assert (await rig.sent())[-1] == "I could not sum up the earlier messages just now. Nothing was changed."
    assert (await rig.store.sessions.get(session_id)).consolidated_through == 0
    await rig.turn("and now?", 1_000)
    assert model(rig).requests[-1].messages[0].text.startswith("q0 ")
