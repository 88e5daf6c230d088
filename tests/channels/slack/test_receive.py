"""Receiving from Slack over a real socket: what is acknowledged, what is dropped, and what comes again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from channels.slack.adapter import SlackChannel
from gateway.domain.inbound import Inbound
from gateway.domain.outbound import Outbound
from tests.channels.slack.conftest import ANA, BOB, Inbox, count, eventually, receiving
from tests.loopback.slack import SlackServer


async def test_a_first_delivery_that_says_retry_zero_is_not_a_repeat(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await slack.dm(ANA, "hello")
        await inbox.until(1)
        assert slack.sockets.envelopes[0].as_json()["retry_attempt"] == 0
        assert count(channel, "retries_seen") == 0


async def test_an_event_first_seen_as_a_repeat_is_handled(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    """Case E1: a mark that says 'repeat' does not say that the event was seen."""
    await slack.dm(ANA, "sent while nobody listened")
    async with receiving(channel, inbox):
        await inbox.until(1)
        await slack.until(lambda: slack.acked)
        assert slack.acked[0].attempt == 1
        assert count(channel, "retries_seen") == 1
        assert inbox.texts == ["sent while nobody listened"]


async def test_the_answer_does_not_wait_for_the_turn_but_for_the_store(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    """Case E3: the sink only stores, so nothing that runs after it returned can hold the answer back."""
    turn_over = asyncio.Event()
    turns: list[asyncio.Task[bool]] = []

    async def store_and_start_a_long_turn(_: Inbound) -> None:
        turns.append(asyncio.create_task(turn_over.wait()))

    inbox.before = store_and_start_a_long_turn
    async with receiving(channel, inbox):
        await slack.dm(ANA, "think about it")
        await slack.until(lambda: len(slack.acked) == 1)
        assert not turns[0].done()
        assert await slack.redeliver_unacked() == 0
    turn_over.set()
    await asyncio.gather(*turns)


async def test_a_mention_announced_twice_has_one_dedupe_key(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    """Case E6: `app_mention` and `message` of one post are one event."""
    async with receiving(channel, inbox):
        ts = await slack.mention(ANA, "C0GENERAL", "look")
        first, second = await inbox.until(2)
        assert first == second
        assert first.dedupe_key == f"msg:{slack.team_id}:C0GENERAL:{ts}"


async def test_what_nobody_listens_to_is_acknowledged_and_counted(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    async with receiving(channel, inbox):
        await slack.deliver({"type": "reaction_added", "user": ANA, "item": {"ts": "1.1"}})
        await slack.deliver({"type": "app_uninstalled"})
        await slack.deliver({"user": ANA})
        await slack.sockets.deliver({"event": ["x"]})
        await slack.sockets.deliver({"type": "block_actions", "actions": []}, type="interactive")
        await slack.sockets.deliver({"command": "/x"}, type="slash_commands")
        await slack.sockets.deliver("not an object", type="events_api")  # type: ignore[arg-type]
        await slack.until(lambda: not slack.unacked)
        assert len(slack.acked) == 7
        assert count(channel, "dropped_not_a_message") == 2
        assert count(channel, "dropped_malformed") == 3
        assert count(channel, "dropped_not_an_event") == 2
        assert inbox.entered == 0


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message"},
        {"type": "message", "channel": 7, "user": [], "ts": {}},
        {"type": "message", "channel": {"id": "C1"}, "user": {"id": "U1"}},
        {"type": "app_mention", "text": None, "files": 3, "blocks": {"a": 1}},
        {"type": "message", "message": "x", "previous_message": 1, "subtype": "message_changed"},
        {"type": "function_executed", "bot_access_token": 1, "function_execution_id": []},
        {"type": "message", "assistant_thread": "x", "item": "y", "view": 2, "channel_type": "im"},
    ],
)
async def test_a_strange_event_is_dropped_and_harms_nothing(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, event: dict[str, object]
) -> None:
    async with receiving(channel, inbox):
        await slack.deliver(event)
        await slack.dm(ANA, "hello")
        await inbox.until(1)
        await slack.until(lambda: not slack.unacked)
    assert inbox.texts == ["hello"]


async def test_a_sink_that_raises_is_not_acknowledged_and_the_event_comes_again(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    """Cases E1 and E3: what was not stored is not acknowledged."""

    async def fail_once(_: Inbound) -> None:
        inbox.before = None
        raise RuntimeError("the store is away")

    inbox.before = fail_once
    async with receiving(channel, inbox):
        await slack.dm(ANA, "keep me")
        await eventually(lambda: count(channel, "sink_failures") == 1)
        await slack.dm(BOB, "a later one")
        await inbox.until(1)
        await slack.until(lambda: len(slack.acked) == 1)
        assert [envelope.payload["event"]["text"] for envelope in slack.unacked] == ["keep me"]
        await slack.redeliver_unacked()
        assert [inbound.text for inbound in await inbox.until(2)] == ["a later one", "keep me"]
        await slack.until(lambda: not slack.unacked)


async def test_one_chat_waits_for_the_store_and_another_does_not(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    stored = asyncio.Event()

    async def slow_for_ana(inbound: Inbound) -> None:
        if inbound.text == "slow":
            await stored.wait()

    inbox.before = slow_for_ana
    async with receiving(channel, inbox):
        await slack.dm(ANA, "slow")
        await slack.dm(ANA, "second")
        await slack.dm(BOB, "other")
        await inbox.until(1)
        assert inbox.texts == ["other"]
        stored.set()
        await inbox.until(3)
        assert inbox.texts == ["other", "slow", "second"]


async def test_garbage_on_the_socket_is_passed_over(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        for garbage in ("", "hello", "{", "[1]", "null", '{"type": "unheard_of"}', '{"envelope_id": "e"}'):
            await slack.sockets.send_raw(garbage)
        await slack.dm(ANA, "hello")
        await inbox.until(1)
        assert slack.sockets.opened == 1


async def test_stopping_waits_until_the_sink_has_let_go(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    steps: list[str] = []

    async def store(_: Inbound) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for _round in range(10):
                await asyncio.sleep(0)
            steps.append("let go")

    inbox.before = store
    task = asyncio.create_task(channel.receive(inbox))
    await slack.dm(ANA, "hello")
    await eventually(lambda: inbox.entered == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["let go"]
    assert slack.acked == []


async def test_no_library_logs_what_people_write(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with receiving(channel, inbox):
        await slack.dm(ANA, "very private words")
        (inbound,) = await inbox.until(1)
        await channel.post(inbound.route, channel.render(Outbound(text="very private answer"))[0], "d.0", False)
    assert "very private" not in caplog.text


async def test_who_the_bot_is_is_asked_once(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    async with receiving(channel, inbox):
        for number in range(3):
            await slack.dm(ANA, f"message {number}")
        await inbox.until(3)
    assert [call.method for call in slack.calls] == ["auth.test", "apps.connections.open"]


async def test_the_echo_of_every_own_post_is_dropped(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    slack.echo_own_posts = True
    async with receiving(channel, inbox):
        ts = await slack.mention(ANA, "C0GENERAL", "hi")
        (inbound, _) = await inbox.until(2)
        (part,) = channel.render(Outbound(text="hello"))
        await channel.post(inbound.route, part, "d.0", False)
        await slack.until(lambda: len(slack.acked) == 3)
        assert count(channel, "dropped_own") == 1
        assert slack.answers("C0GENERAL", ts) == ["hello"]
