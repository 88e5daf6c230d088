"""Sending to Slack over real HTTP: what is called, what is shown to whom, and what is found again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from channels.slack.adapter import SlackChannel
from gateway.domain.errors import AuthFailed, Gone, NotDone, Unavailable, Unknown
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.outbound import Part
from gateway.ports.channel import Presence
from tests.channels.slack.conftest import ANA, BOB, DM, GENERAL, Inbox, part, receiving
from tests.loopback.slack import SlackFault, SlackServer, broken, limited, lost, refused


@pytest.fixture
async def thread(slack: SlackServer) -> Route:
    return replace(GENERAL, thread=await slack.say(ANA, "C0GENERAL", "a thread begins", kinds=()))


async def test_a_post_is_markdown_with_its_key_and_unfurls_nothing(
    slack: SlackServer, channel: SlackChannel, thread: Route
) -> None:
    ref = await channel.post(thread, part("**hi** <!here>"), "d1.0", False)
    assert slack.called("chat.postMessage") == [
        {
            "channel": "C0GENERAL",
            "thread_ts": thread.thread,
            "markdown_text": "**hi** <\u2060!here>",
            "metadata": {"event_type": "trunkline", "event_payload": {"key": "d1.0"}},
            "unfurl_links": False,
            "unfurl_media": False,
        }
    ]
    assert slack.world.chats["C0GENERAL"].messages[-1].ts == ref.id
    assert slack.world.pings == []


async def test_the_plain_form_is_literal_text(slack: SlackServer, channel: SlackChannel) -> None:
    rich = part("*a* <b> & c")
    for plain in (Part(text=rich.plain, plain=rich.plain), replace(rich, details={**rich.details, "plain": True})):
        await channel.post(DM, plain, "d1.0", False)
        assert slack.called("chat.postMessage")[-1]["text"] == "*a* &lt;b&gt; &amp; c"
        assert slack.called("chat.postMessage")[-1]["mrkdwn"] is False
    assert slack.answers("D0ANA") == ["*a* <b> & c"] * 2


async def test_a_note_for_one_person_in_a_thread_is_shown_there_to_nobody_else(
    slack: SlackServer, channel: SlackChannel, thread: Route
) -> None:
    await slack.say(BOB, "C0GENERAL", "a reply", thread.thread, kinds=())
    ref = await channel.post(thread, part("psst", only_for=BOB), "d1.0", False)
    assert slack.private_notes("C0GENERAL", BOB) == ["psst"]
    assert slack.private_notes("C0GENERAL", ANA) == []
    assert slack.called("chat.postEphemeral")[0]["thread_ts"] == thread.thread
    assert await channel.put(thread, ref, part("psst", only_for=BOB), part("psst", only_for=BOB), "d1.0", False) == ref
    for call in (channel.put(thread, ref, part("new"), None, "d1.0", False), channel.drop(thread, ref)):
        with pytest.raises(NotDone) as raised:
            await call
        assert raised.value.fatal


async def test_a_note_on_a_mention_that_nobody_replied_to_is_shown_at_the_root_of_the_chat(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    """Slack shows a note in a thread only where the thread is active, and here it does not exist yet."""
    async with receiving(channel, inbox):
        root = await slack.mention(BOB, "C0GENERAL", "may I?", as_both_events=False)
        await slack.mention(BOB, "C0GENERAL", "and here?", root, as_both_events=False)
        at_root, in_thread = await inbox.until(2)
    assert at_root.key == in_thread.key
    for asked in (at_root, in_thread):
        await channel.post(asked.route, part("not yet", only_for=BOB), "d1.0", False)
    assert slack.private_notes("C0GENERAL", BOB) == ["not yet", "not yet"]
    assert ["thread_ts" in call for call in slack.called("chat.postEphemeral")] == [False, True]


async def test_an_answer_to_a_mention_at_the_root_starts_its_thread_and_is_found_in_it(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    since = datetime.now(UTC)
    async with receiving(channel, inbox):
        root = await slack.mention(BOB, "C0GENERAL", "what is new?", as_both_events=False)
        (asked,) = await inbox.until(1)
    ref = await channel.post(asked.route, part("much"), "d1.0", False)
    assert slack.answers("C0GENERAL", root) == ["much"]
    assert await channel.find(asked.route, "d1.0", since, ()) == ref


async def test_a_note_in_a_direct_chat_is_a_message_that_stays(slack: SlackServer, channel: SlackChannel) -> None:
    await channel.post(DM, part("psst", only_for=ANA), "d1.0", False)
    assert slack.answers("D0ANA") == ["psst"]


async def test_a_picked_choice_is_answered_privately(slack: SlackServer, channel: SlackChannel, thread: Route) -> None:
    choice = Inbound(
        kind=InboundKind.CHOICE, route=thread, dedupe_key="c", sender=Sender(id=ANA), sent_at=datetime.now(UTC)
    )
    await slack.say(BOB, "C0GENERAL", "a reply", thread.thread, kinds=())
    await channel.answer(choice, "too <late>")
    assert slack.private_notes("C0GENERAL", ANA) == ["too <late>"]


async def test_a_change_that_is_confirmed_to_be_shown_costs_no_call(slack: SlackServer, channel: SlackChannel) -> None:
    ref = await channel.post(DM, part("same"), "d1.0", True)
    assert await channel.put(DM, ref, part("same"), part("same"), "d1.0", False) == ref
    assert slack.called("chat.update") == []
    await channel.put(DM, ref, part("same"), None, "d1.0", False)
    assert len(slack.called("chat.update")) == 1


async def test_taking_away_what_is_gone_is_done(slack: SlackServer, channel: SlackChannel) -> None:
    ref = await channel.post(DM, part("x"), "d1.0", True)
    await channel.drop(DM, ref)
    await channel.drop(DM, ref)
    with pytest.raises(Gone):
        await channel.put(DM, ref, part("y"), None, "d1.0", False)


async def test_a_message_is_found_by_its_key_on_any_page(
    slack: SlackServer, channel: SlackChannel, thread: Route
) -> None:
    since = datetime.now(UTC)
    for place in (DM, thread):
        first = await channel.post(place, part("mine"), "d1.0", False)
        for number in range(450):
            await slack.say(ANA, place.chat_id, f"noise {number}", place.thread, kinds=())
        last = await channel.post(place, part("mine too"), "d1.1", False)
        assert await channel.find(place, "d1.0", since, ()) == first
        assert await channel.find(place, "d1.1", since, [first]) == last
        assert await channel.find(place, "d1.0", since, [first]) is None
        assert await channel.find(place, "d1.2", since, ()) is None
    assert len(slack.called("conversations.history")) > 4
    assert len(slack.called("conversations.replies")) > 4


async def test_a_message_is_found_across_clocks_that_differ_by_seconds(
    slack: SlackServer, channel: SlackChannel
) -> None:
    ref = await channel.post(DM, part("mine"), "d1.0", False)
    moment = datetime.fromtimestamp(float(ref.id), UTC)
    assert await channel.find(DM, "d1.0", moment + timedelta(seconds=4), ()) == ref
    assert await channel.find(DM, "d1.0", moment + timedelta(seconds=6), ()) is None


async def test_a_stranger_with_our_key_is_not_found(slack: SlackServer, channel: SlackChannel) -> None:
    await slack.say(BOB, "D0ANA", "forged", kinds=())
    slack.world.chats["D0ANA"].messages[-1].metadata = {"event_type": "trunkline", "event_payload": {"key": "d1.0"}}
    assert await channel.find(DM, "d1.0", datetime.now(UTC) - timedelta(minutes=1), ()) is None


async def test_nothing_is_found_where_there_is_no_chat_or_thread(channel: SlackChannel) -> None:
    now = datetime.now(UTC)
    assert await channel.find(Route("slack", "C0NOWHERE"), "d1.0", now, ()) is None
    assert await channel.find(replace(GENERAL, thread="1.000001"), "d1.0", now, ()) is None


@pytest.mark.parametrize("fault", [limited(7), broken(503), refused("internal_error")])
async def test_a_search_that_got_no_answer_is_never_taken_for_not_there(
    slack: SlackServer, channel: SlackChannel, fault: SlackFault
) -> None:
    slack.fail_next(fault, "conversations.history")
    with pytest.raises(Unavailable):
        await channel.find(DM, "d1.0", datetime.now(UTC), ())


async def test_the_status_of_a_thread_is_shown_and_cleared(
    slack: SlackServer, channel: SlackChannel, thread: Route
) -> None:
    await channel.presence(thread, Presence.WORKING)
    assert slack.world.statuses == {("C0GENERAL", thread.thread): "is thinking…"}
    await channel.presence(thread, Presence.IDLE)
    assert slack.world.statuses == {("C0GENERAL", thread.thread): ""}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (limited(), NotDone),
        (broken(), Unknown),
        (lost(), Unknown),
        (refused("missing_scope"), AuthFailed),
        (refused("invalid_auth"), AuthFailed),
    ],
)
async def test_a_status_that_cannot_be_shown_is_told_of_as_a_post_is(
    slack: SlackServer, channel: SlackChannel, thread: Route, fault: SlackFault, error: type[Exception]
) -> None:
    slack.fail_next(fault, "assistant.threads.setStatus")
    with pytest.raises(error):
        await channel.presence(thread, Presence.WORKING)
    await channel.presence(DM, Presence.WORKING)
    assert len(slack.called("assistant.threads.setStatus")) == 1
