"""The loopback Slack refuses what Slack refuses, so that a test that passes on it means something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.channels.slack.conftest import ANA
from tests.loopback.slack import SlackServer, typed


@pytest.fixture
async def client(slack: SlackServer) -> AsyncIterator[AsyncWebClient]:
    async with ClientSession() as session:
        yield AsyncWebClient(token=slack.bot_token, base_url=slack.api_url, session=session, retry_handlers=[])


async def refusal(client: AsyncWebClient, method: str, **args: Any) -> str:
    with pytest.raises(SlackApiError) as raised:
        await client.api_call(method, json=args)
    return str(raised.value.response["error"])


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"channel": "C0NOWHERE", "text": "x"}, "channel_not_found"),
        ({"channel": "C0OLD", "text": "x"}, "is_archived"),
        ({"channel": "C0OTHERS", "text": "x"}, "not_in_channel"),
        ({"channel": "D0ANA"}, "no_text"),
        ({"channel": "D0ANA", "markdown_text": "x", "text": "x"}, "markdown_text_conflict"),
        ({"channel": "D0ANA", "markdown_text": "x", "blocks": []}, "markdown_text_conflict"),
        ({"channel": "D0ANA", "markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"channel": "D0ANA", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "D0ANA", "text": "x", "thread_ts": "1.000001"}, "thread_not_found"),
        ({"channel": "D0ANA", "text": "x", "metadata": {"key": "k"}}, "invalid_metadata_format"),
    ],
)
async def test_a_post_is_checked(slack: SlackServer, client: AsyncWebClient, args: dict[str, Any], code: str) -> None:
    slack.add_channel("others", ANA, bot=False)
    slack.world.chats[slack.add_channel("old", ANA)].is_archived = True
    assert await refusal(client, "chat.postMessage", **args) == code
    assert slack.answers("D0ANA") == []


async def test_tokens_are_checked_for_their_kind(slack: SlackServer, client: AsyncWebClient) -> None:
    assert await refusal(client, "apps.connections.open") == "not_allowed_token_type"
    client.token = slack.app_token
    assert await refusal(client, "auth.test") == "not_allowed_token_type"
    client.token = "xoxb-wrong"
    assert await refusal(client, "auth.test") == "invalid_auth"
    client.token = None
    assert await refusal(client, "auth.test") == "not_authed"


async def test_only_own_messages_can_be_changed(slack: SlackServer, client: AsyncWebClient) -> None:
    ts = await slack.dm(ANA, "mine")
    assert await refusal(client, "chat.update", channel="D0ANA", ts=ts, text="x") == "cant_update_message"
    assert await refusal(client, "chat.delete", channel="D0ANA", ts=ts) == "cant_delete_message"
    assert await refusal(client, "chat.delete", channel="D0ANA", ts="1.1") == "message_not_found"
    own = (await client.chat_postMessage(channel="D0ANA", text="short"))["ts"]
    assert await refusal(client, "chat.update", channel="D0ANA", ts=own, text="x" * 4_001) == "msg_too_long"
    assert await refusal(client, "made.up") == "unknown_method"


async def test_pages_follow_each_other_without_gap_or_repeat(slack: SlackServer, client: AsyncWebClient) -> None:
    root = await slack.say(ANA, "C0GENERAL", "root", kinds=())
    replies = [await slack.say(ANA, "C0GENERAL", f"reply {number}", root, kinds=()) for number in range(7)]
    seen, cursor = [], None
    for _ in range(4):
        page = await client.conversations_replies(channel="C0GENERAL", ts=root, limit=3, cursor=cursor)
        seen += [message["ts"] for message in page["messages"]]
        cursor = page["response_metadata"]["next_cursor"]
        if not cursor:
            break
    assert seen == [root, *replies]
    since = await client.conversations_replies(channel="C0GENERAL", ts=root, oldest=replies[5])
    assert [message["ts"] for message in since["messages"]] == [root, replies[6]]
    history = await client.conversations_history(channel="C0GENERAL")
    assert [message["ts"] for message in history["messages"]] == [root]


async def test_what_people_type_is_passed_on_escaped_and_shown_as_typed(slack: SlackServer) -> None:
    await slack.dm(ANA, "a < b & <@U1>")
    assert slack.sockets.envelopes[0].payload["event"]["text"] == typed("a < b & <@U1>") == "a &lt; b &amp; &lt;@U1&gt;"
    assert slack.messages("D0ANA") == ["a < b & <@U1>"]


async def test_a_live_call_in_a_post_is_noticed(slack: SlackServer, client: AsyncWebClient) -> None:
    await client.chat_postMessage(channel="D0ANA", markdown_text="<!here> `<@U1>`")
    assert len(slack.world.pings) == 2
