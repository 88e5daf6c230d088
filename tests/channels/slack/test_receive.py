"""Receiving from Slack over a real socket: what is acknowledged, what comes again, and what heals."""

from __future__ import annotations

import asyncio
import logging
import traceback

import pytest

from channels.slack.adapter import SlackChannel
from channels.slack.api import SlackApi
from channels.slack.link import Link
from channels.slack.pulse import Pulse
from gateway.domain.errors import AuthFailed, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.outbound import Outbound
from tests.channels.slack.conftest import ANA, BOB, Inbox, eventually, options_for, receiving
from tests.clock import ManualClock
from tests.loopback.slack import SlackServer, broken, held, limited, lost, refused


def count(channel: SlackChannel, what: str) -> int:
    return channel.health().counters.get(what, 0)


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
    """E3: the sink only stores, so nothing that runs after it returned can hold the answer back."""
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


async def test_a_sink_that_raises_is_not_acknowledged_and_the_event_comes_again(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
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


async def test_what_is_being_stored_when_slack_asks_for_a_new_connection_is_still_acknowledged(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    stored = asyncio.Event()

    async def wait(inbound: Inbound) -> None:
        if inbound.text == "slow":
            await stored.wait()

    inbox.before = wait
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await slack.dm(ANA, "slow")
        await eventually(lambda: inbox.entered == 1)
        await slack.refresh()
        await slack.wait_connected(opened=2)
        await slack.dm(BOB, "over the new one")
        await inbox.until(1)
        stored.set()
        await slack.until(lambda: not slack.unacked)
        assert [envelope.attempt for envelope in slack.acked] == [0, 0]
        await slack.until(lambda: slack.sockets.connected == 1)
        assert count(channel, "reconnects") == 1


async def test_lost_connections_are_replaced_with_growing_waits_on_the_clock(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, clock: ManualClock
) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        waited = []
        for opened in range(2, 9):
            await slack.drop_connections()
            await eventually(lambda: clock.sleepers or slack.sockets.opened == opened)  # noqa: B023
            seconds = 0.0
            while slack.sockets.opened < opened:
                if clock.sleepers:
                    await clock.advance(1)
                    seconds += 1
                await asyncio.sleep(0.002)
            await eventually(lambda: channel.health().receiving)
            waited.append(seconds)
        assert waited == [0, 1, 2, 4, 8, 16, 30]
        await clock.advance(31)
        await slack.drop_connections()
        await slack.wait_connected(opened=9)


async def test_a_refused_app_token_ends_receiving(slack: SlackServer, clock: ManualClock, inbox: Inbox) -> None:
    channel = SlackChannel("slack", options_for(slack, app_token="xapp-wrong"), clock)
    await channel.open()
    with pytest.raises(AuthFailed, match="connections:write") as raised:
        await channel.receive(inbox)
    assert "xapp-wrong" not in str(raised.value)
    assert not channel.health().receiving
    await channel.close()


@pytest.mark.parametrize("code", ["invalid_auth", "not_authed", "not_allowed_token_type", "token_revoked"])
async def test_a_token_refused_later_ends_receiving(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, code: str
) -> None:
    slack.fail_next(refused(code), "apps.connections.open")
    with pytest.raises(AuthFailed, match=code):
        await channel.receive(inbox)


async def test_a_missing_scope_is_named(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    slack.api.missing_scopes.add("connections:write")
    with pytest.raises(AuthFailed, match=r"connections:write.*reinstall"):
        await channel.receive(inbox)


async def test_socket_mode_turned_off_ends_receiving(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    task = asyncio.create_task(channel.receive(inbox))
    await slack.wait_connected()
    await slack.refresh("link_disabled")
    with pytest.raises(AuthFailed, match="Socket Mode"):
        await task


@pytest.mark.parametrize(
    "fault", [limited(7), broken(503), lost(apply=False), refused("internal_error"), refused("what_is_this")]
)
async def test_a_platform_that_is_away_is_tried_again_later(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, clock: ManualClock, fault: object
) -> None:
    slack.fail_next(fault, "apps.connections.open")  # type: ignore[arg-type]
    async with receiving(channel, inbox):
        await eventually(lambda: count(channel, "connect_failures") == 1)
        assert not channel.health().receiving
        assert channel.health().detail
        await clock.advance(7)
        await slack.dm(ANA, "hello")
        await inbox.until(1)
        assert channel.health().receiving


async def test_a_ping_of_slack_is_answered_and_counts_as_life(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, clock: ManualClock
) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await eventually(lambda: channel.health().receiving)
        await clock.advance(60)
        await slack.sockets.ping()
        await slack.until(lambda: slack.sockets.pongs == 1)
        await eventually(lambda: channel.health().last_alive == clock.now())


async def test_a_connection_that_answers_no_ping_is_replaced(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.slack.link.PING_SECONDS", 0.05)
    slack.sockets.is_deaf = True
    async with receiving(channel, inbox):
        await slack.wait_connected(opened=2)
        slack.sockets.is_deaf = False
        await slack.dm(ANA, "hello")
        await inbox.until(1)


async def test_a_connection_that_is_pinged_and_answers_stays(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("channels.slack.link.PING_SECONDS", 0.02)
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await slack.until(lambda: slack.sockets.pings > 5)
        assert slack.sockets.opened == 1


async def test_garbage_on_the_socket_is_passed_over(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        for garbage in ("", "hello", "{", "[1]", "null", '{"type": "unheard_of"}', '{"envelope_id": "e"}'):
            await slack.sockets.send_raw(garbage)
        await slack.dm(ANA, "hello")
        await inbox.until(1)
        assert slack.sockets.opened == 1


async def test_too_many_connections_makes_room_first(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await slack.refresh("too_many_websockets")
        await slack.wait_connected(opened=2)
        await slack.until(lambda: slack.sockets.connected == 1)
        assert slack.sockets.most == 1


async def test_a_socket_that_opens_and_says_nothing_is_not_a_connection(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    monkeypatch.setattr("channels.slack.link.CONNECT_SECONDS", 0.05)
    slack.sockets.says_hello = False
    async with receiving(channel, inbox):
        await eventually(lambda: count(channel, "connect_failures") == 1)
        assert not channel.health().receiving
        slack.sockets.says_hello = True
        await clock.advance(2)
        await eventually(lambda: channel.health().receiving)


async def test_a_socket_that_is_closed_at_once_is_not_a_connection(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox, clock: ManualClock
) -> None:
    slack.sockets.refuses_tickets = True
    async with receiving(channel, inbox):
        await eventually(lambda: count(channel, "connect_failures") == 1)
        assert "ticket" not in channel.health().detail
        slack.sockets.refuses_tickets = False
        await clock.advance(2)
        await eventually(lambda: channel.health().receiving)


async def test_stopping_in_the_middle_of_a_connect_leaves_nothing(
    slack: SlackServer, channel: SlackChannel, inbox: Inbox
) -> None:
    release = asyncio.Event()
    slack.fail_next(held(release), "apps.connections.open")
    async with receiving(channel, inbox):
        await slack.until(lambda: slack.called("apps.connections.open"))
    names = [str(task.get_coro()) for task in asyncio.all_tasks()]
    assert not [name for name in names if "Link" in name or "SocketMode" in name]
    release.set()


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


async def test_the_ticket_of_a_refused_socket_is_in_no_error(slack: SlackServer, clock: ManualClock) -> None:
    slack.sockets.refuses_tickets = True
    api = SlackApi(options_for(slack))
    await api.open()

    async def ignore(*_: object) -> None:
        """Take nothing in."""

    link = Link(api, Pulse(clock), ignore)
    with pytest.raises(Unavailable) as raised:
        await link.connect()
    assert "ticket=" not in "".join(traceback.format_exception(raised.value))
    await link.close()
    await api.close()


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
