"""Sending to Slack over real HTTP: what is called, and what an answer means."""

from __future__ import annotations

import asyncio
import traceback
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from channels.slack.adapter import SlackChannel
from channels.slack.failures import MEANINGS, Meaning
from channels.slack.render import render
from gateway.domain.errors import AuthFailed, DeliveryError, Gone, NotDone, Unavailable, Unknown
from gateway.domain.inbound import Inbound, InboundKind
from gateway.domain.keys import Route
from gateway.domain.message import Sender
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.ports.channel import Presence
from tests.channels.slack.conftest import ANA, BOB, options_for
from tests.clock import ManualClock
from tests.loopback.slack import SlackFault, SlackServer, broken, limited, lost, refused

DM = Route("slack", "D0ANA")
GENERAL = Route("slack", "C0GENERAL")


def part(text: str, only_for: str | None = None) -> Part:
    (made,) = render(Outbound(text=text, only_for=only_for))
    return made


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


async def test_a_note_for_one_person_in_a_shared_chat(slack: SlackServer, channel: SlackChannel, thread: Route) -> None:
    ref = await channel.post(thread, part("psst", only_for=BOB), "d1.0", False)
    assert slack.private_notes("C0GENERAL", BOB) == ["psst"]
    assert slack.private_notes("C0GENERAL", ANA) == []
    assert await channel.put(thread, ref, part("psst", only_for=BOB), part("psst", only_for=BOB), "d1.0", False) == ref
    for call in (channel.put(thread, ref, part("new"), None, "d1.0", False), channel.drop(thread, ref)):
        with pytest.raises(NotDone) as raised:
            await call
        assert raised.value.fatal


async def test_a_note_in_a_direct_chat_is_a_message_that_stays(slack: SlackServer, channel: SlackChannel) -> None:
    await channel.post(DM, part("psst", only_for=ANA), "d1.0", False)
    assert slack.answers("D0ANA") == ["psst"]


async def test_a_picked_choice_is_answered_privately(slack: SlackServer, channel: SlackChannel, thread: Route) -> None:
    choice = Inbound(
        kind=InboundKind.CHOICE, route=thread, dedupe_key="c", sender=Sender(id=ANA), sent_at=datetime.now(UTC)
    )
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


@pytest.mark.parametrize("fault", [limited(), broken(), lost(), refused("missing_scope"), refused("invalid_auth")])
async def test_a_status_that_cannot_be_shown_is_no_error(
    slack: SlackServer, channel: SlackChannel, thread: Route, fault: SlackFault
) -> None:
    slack.fail_next(fault, "assistant.threads.setStatus")
    await channel.presence(thread, Presence.WORKING)
    await channel.presence(DM, Presence.WORKING)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (limited(7), NotDone("ratelimited", retry_after=7)),
        (SlackFault(error="ratelimited"), NotDone("ratelimited", retry_after=30)),
        (SlackFault(error="rate_limited", status=429, retry_after="soon"), NotDone("ratelimited", retry_after=30)),
        (refused("channel_not_found"), NotDone("channel_not_found", fatal=True)),
        (refused("is_archived"), NotDone("is_archived", fatal=True)),
        (refused("not_in_channel"), NotDone("not_in_channel", fatal=True)),
        (refused("restricted_action"), NotDone("restricted_action", fatal=True)),
        (refused("thread_not_found"), NotDone("thread_not_found", fatal=True)),
        (refused("invalid_blocks"), NotDone("invalid_blocks", formatting=True)),
        (refused("msg_too_long"), NotDone("msg_too_long", formatting=True)),
        (refused("markdown_text_conflict"), NotDone("markdown_text_conflict", formatting=True)),
        (refused("no_text"), NotDone("no_text", formatting=True)),
        (refused("team_added_to_org"), NotDone("team_added_to_org")),
        (refused("message_not_found"), Gone("gone")),
        (refused("internal_error"), Unknown("x")),
        (refused("fatal_error"), Unknown("x")),
        (broken(500), Unknown("x")),
        (broken(503, apply=True), Unknown("x")),
        (lost(), Unknown("x")),
        (lost(apply=False), Unknown("x")),
        (SlackFault(status=404, error=""), NotDone("http_404")),
        (SlackFault(error=""), Unknown("x")),
        (refused("invalid_auth"), AuthFailed("x")),
        (refused("token_revoked"), AuthFailed("x")),
        (refused("account_inactive"), AuthFailed("x")),
        (refused("missing_scope", needed="chat:write"), AuthFailed("x")),
    ],
)
async def test_every_answer_means_one_thing(
    slack: SlackServer, channel: SlackChannel, fault: SlackFault, expected: DeliveryError | AuthFailed
) -> None:
    slack.fail_next(fault)
    with pytest.raises(type(expected)) as raised:
        await channel.post(DM, part("hi"), "d1.0", False)
    assert type(raised.value) is type(expected)
    assert raised.value.__cause__ is not None
    told = "".join(traceback.format_exception(raised.value))
    assert slack.bot_token not in told
    if isinstance(expected, NotDone):
        assert vars(raised.value) == vars(expected)
    assert len(slack.called("chat.postMessage")) == 1


async def test_a_missing_scope_is_named_with_what_to_do(slack: SlackServer, channel: SlackChannel) -> None:
    slack.api.missing_scopes.add("chat:write")
    with pytest.raises(AuthFailed, match=r"chat:write.*reinstall"):
        await channel.post(DM, part("hi"), "d1.0", False)


async def test_a_server_that_is_not_there_took_nothing(slack: SlackServer, channel: SlackChannel) -> None:
    await slack.stop()
    with pytest.raises(DeliveryError):
        # This one may still have been written to a connection kept from before.
        await channel.post(DM, part("hi"), "d1.0", False)
    with pytest.raises(NotDone) as raised:
        await channel.post(DM, part("hi"), "d1.0", False)
    assert raised.value.code == "unreachable"
    assert not raised.value.fatal
    with pytest.raises(Unavailable):
        await channel.find(DM, "d1.0", datetime.now(UTC), ())


async def test_an_answer_that_takes_too_long_is_unknown(
    slack: SlackServer, channel: SlackChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.slack.api.CALL_SECONDS", 0.01)
    release = asyncio.Event()
    slack.fail_next(SlackFault(release=release))
    with pytest.raises(Unknown):
        await channel.post(DM, part("hi"), "d1.0", False)
    release.set()


async def test_a_refused_post_sends_its_answer_once_more_for_nobody(slack: SlackServer, channel: SlackChannel) -> None:
    slack.fail_next(lost())
    with pytest.raises(Unknown):
        await channel.post(DM, part("once"), "d1.0", False)
    assert slack.answers("D0ANA") == ["once"]
    assert len(slack.called("chat.postMessage")) == 1


def test_every_code_of_the_table_is_lower_case_and_no_meaning_is_empty() -> None:
    assert all(code == code.lower() for code in MEANINGS)
    assert set(MEANINGS.values()) == set(Meaning)


# Opening.


@pytest.mark.parametrize("token", ["xoxb-wrong", "xoxb-"])
async def test_a_refused_bot_token_is_told_with_what_to_do(slack: SlackServer, clock: ManualClock, token: str) -> None:
    channel = SlackChannel("slack", options_for(slack, bot_token=token), clock)
    with pytest.raises(AuthFailed, match="bot_token") as raised:
        await channel.open()
    assert "xoxb-wrong" not in "".join(traceback.format_exception(raised.value))
    await channel.close()


@pytest.mark.parametrize("fault", [limited(7), broken(), refused("unknown_method")])
async def test_a_slack_that_is_away_is_unavailable(slack: SlackServer, clock: ManualClock, fault: SlackFault) -> None:
    slack.fail_next(fault, "auth.test")
    channel = SlackChannel("slack", options_for(slack), clock)
    with pytest.raises(Unavailable):
        await channel.open()
    await channel.open()
    await channel.close()


async def test_a_token_that_is_no_bots_is_refused(
    slack: SlackServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(slack.api._methods, "auth.test", lambda _: {"user_id": "U1", "team_id": "T1"})
    channel = SlackChannel("slack", options_for(slack), clock)
    with pytest.raises(AuthFailed, match="xoxb"):
        await channel.open()


async def test_opening_and_closing_twice_is_harmless(slack: SlackServer, clock: ManualClock) -> None:
    channel = SlackChannel("slack", options_for(slack), clock)
    await channel.close()
    await channel.open()
    await channel.open()
    await channel.close()
    await channel.close()
    assert len(slack.called("auth.test")) == 1
    with pytest.raises(RuntimeError):
        await channel.drop(DM, Ref(id="1.1"))
