"""Opening and closing a Slack channel."""

from __future__ import annotations

import traceback

import pytest

from channels.slack.adapter import SlackChannel
from gateway.domain.errors import AuthFailed, Unavailable
from gateway.domain.outbound import Ref
from tests.channels.slack.conftest import DM, options_for
from tests.clock import ManualClock
from tests.loopback.slack import SlackFault, SlackServer, broken, limited, refused


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


async def test_a_token_that_is_no_bots_is_refused(slack: SlackServer, clock: ManualClock) -> None:
    slack.api.identity = {"user_id": "U1", "team_id": "T1"}
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
