"""The connection to Slack: refused, lost, replaced, and never taken for what it is not."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from channels.slack.adapter import SlackChannel
from channels.slack.api import Patience, SlackApi
from channels.slack.link import Link
from gateway.domain.errors import AuthFailed, Unavailable
from gateway.domain.inbound import Inbound
from gateway.ports.vitals import Vitals
from tests.channels.slack.conftest import ANA, BOB, Inbox, count, eventually, opened, options_for, receiving
from tests.clock import ManualClock
from tests.loopback.slack import SlackServer, broken, held, limited, lost, refused


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
    slack: SlackServer, clock: ManualClock, inbox: Inbox
) -> None:
    slack.sockets.is_deaf = True
    async with opened(slack, clock, ping_seconds=0.05) as channel, receiving(channel, inbox):
        await slack.wait_connected(opened=2)
        slack.sockets.is_deaf = False
        await slack.dm(ANA, "hello")
        await inbox.until(1)


async def test_a_connection_that_is_pinged_and_answers_stays(
    slack: SlackServer, clock: ManualClock, inbox: Inbox
) -> None:
    async with opened(slack, clock, ping_seconds=0.2) as channel, receiving(channel, inbox):
        await slack.wait_connected()
        await slack.until(lambda: slack.sockets.pings > 2)
        assert slack.sockets.opened == 1


async def test_too_many_connections_makes_room_first(slack: SlackServer, channel: SlackChannel, inbox: Inbox) -> None:
    async with receiving(channel, inbox):
        await slack.wait_connected()
        await slack.refresh("too_many_websockets")
        await slack.wait_connected(opened=2)
        await slack.until(lambda: slack.sockets.connected == 1)
        assert slack.sockets.most == 1


async def test_a_socket_that_opens_and_says_nothing_is_not_a_connection(
    slack: SlackServer, clock: ManualClock, inbox: Inbox
) -> None:
    slack.sockets.says_hello = False
    async with opened(slack, clock, connect_seconds=0.5) as channel, receiving(channel, inbox):
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


async def test_the_ticket_of_a_refused_socket_is_in_no_error(slack: SlackServer, clock: ManualClock) -> None:
    """Case K5: the address of a socket is a secret too."""
    slack.sockets.refuses_tickets = True
    api = SlackApi(options_for(slack), Patience())
    await api.open()

    async def ignore(*_: object) -> None:
        """Take nothing in."""

    link = Link(api, clock, Vitals(), ignore)
    with pytest.raises(Unavailable) as raised:
        await link.connect()
    assert "ticket=" not in "".join(traceback.format_exception(raised.value))
    await link.close()
    await api.close()
