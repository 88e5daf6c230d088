"""What each answer of Slack means, and each way not to get one."""

from __future__ import annotations

import asyncio
import socket
import traceback
from datetime import UTC, datetime

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from channels.slack.adapter import SlackChannel
from channels.slack.failures import MEANINGS, Meaning, failure
from gateway.domain.errors import AuthFailed, DeliveryError, Gone, NotDone, Unavailable, Unknown, Unreachable
from tests.channels.slack.conftest import DM, opened, part
from tests.clock import ManualClock
from tests.loopback.slack import SlackFault, SlackServer, broken, limited, lost, refused

NOWHERE = ConnectionKey("slack.test", 443, True, True, None, None, None)


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


async def test_a_server_that_is_not_there_cannot_be_asked(slack: SlackServer, channel: SlackChannel) -> None:
    await slack.stop()
    with pytest.raises(Unavailable):
        await channel.find(DM, "d1.0", datetime.now(UTC), ())


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ClientConnectorDNSError(NOWHERE, socket.gaierror(socket.EAI_NONAME, "no such name")),
        aiohttp.ClientConnectorError(NOWHERE, ConnectionRefusedError(111, "refused")),
        aiohttp.ClientConnectorCertificateError(NOWHERE, ValueError("expired")),
        aiohttp.ConnectionTimeoutError("no answer to a SYN, or no free connection"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_failed_before_anything_was_sent_is_unreachable(error: Exception) -> None:
    assert type(failure("chat.postMessage", error)) is Unreachable


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientOSError(104, "reset"),
        aiohttp.SocketTimeoutError("no answer in time"),
        TimeoutError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_failed_later_may_have_been_applied(error: Exception) -> None:
    assert type(failure("chat.postMessage", error)) is Unknown


async def test_an_answer_that_takes_too_long_is_unknown(slack: SlackServer, clock: ManualClock) -> None:
    release = asyncio.Event()
    slack.fail_next(SlackFault(release=release))
    async with opened(slack, clock, call_seconds=1) as channel:
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
