"""The loopback Telegram is as strict as Telegram: asked over plain HTTP, without our adapter."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.loopback.telegram import TelegramServer


async def ask(telegram: TelegramServer, method: str, token: str | None = None, **params: Any) -> dict[str, Any]:
    url = f"{telegram.api_url}/bot{token or telegram.token}/{method}"
    async with aiohttp.ClientSession() as session, session.post(url, json=params) as response:
        answer: dict[str, Any] = await response.json()
        assert response.status == answer.get("error_code", 200)
        return answer


async def updates(telegram: TelegramServer, **params: Any) -> list[int]:
    return [update["update_id"] for update in (await ask(telegram, "getUpdates", **params))["result"]]


async def test_an_offset_confirms_and_forgets_what_is_below(telegram: TelegramServer) -> None:
    ids = [await telegram.private(42, str(index)) for index in range(4)]
    assert await updates(telegram) == ids
    assert await updates(telegram, limit=2) == ids[:2]
    assert telegram.confirmed == 0
    assert await updates(telegram, offset=ids[2]) == ids[2:]
    assert telegram.confirmed == ids[1]
    assert await updates(telegram) == ids[2:]
    assert await updates(telegram, offset=-1) == ids[3:]
    await telegram.requeue()
    assert await updates(telegram) == ids


async def test_a_kind_that_was_not_asked_for_is_not_sent(telegram: TelegramServer) -> None:
    await updates(telegram, allowed_updates=["message"])
    await telegram.push({"poll": {}})
    kept = await telegram.private(42, "x")
    assert await updates(telegram) == [kept]


async def test_a_second_poll_ends_the_first(telegram: TelegramServer) -> None:
    first = asyncio.create_task(ask(telegram, "getUpdates", timeout=30))
    await telegram.wait_polled()
    second = asyncio.create_task(ask(telegram, "getUpdates", timeout=30))
    assert (await first)["error_code"] == 409
    update = await telegram.private(42, "x")
    assert [one["update_id"] for one in (await second)["result"]] == [update]


async def test_a_webhook_rules_polling_out(telegram: TelegramServer) -> None:
    await ask(telegram, "setWebhook", url="https://e.test")
    assert (await ask(telegram, "getWebhookInfo"))["result"]["url"] == "https://e.test"
    assert (await ask(telegram, "getUpdates"))["error_code"] == 409
    await ask(telegram, "deleteWebhook")
    assert await updates(telegram) == []


@pytest.mark.parametrize(
    ("params", "code", "words"),
    [
        ({"chat_id": 5, "text": "x"}, 400, "chat not found"),
        ({"chat_id": 42, "text": " "}, 400, "message text is empty"),
        ({"chat_id": 42, "text": "😀" * 2049}, 400, "message is too long"),
        ({"chat_id": 43, "text": "x"}, 403, "blocked"),
        ({"chat_id": 42, "text": "x", "message_thread_id": 9}, 400, "message thread not found"),
        ({"chat_id": 42, "text": "x", "reply_parameters": {"message_id": 9}}, 400, "replied not found"),
        ({"chat_id": 42, "text": "abc", "entities": [["bold", 0, 4]]}, 400, "can't parse entities"),
        ({"chat_id": 42, "text": "😀", "entities": [["bold", 0, 1]]}, 400, "can't parse entities"),
        ({"chat_id": 42, "text": "abc", "entities": [["bold", 0, 2], ["code", 1, 2]]}, 400, "can't parse entities"),
        ({"chat_id": 42, "text": "abc", "entities": 101 * [["bold", 0, 1]]}, 400, "can't parse entities"),
        ({"chat_id": 42, "text": "abc", "parse_mode": "HTML"}, 400, "parse mode"),
    ],
)
async def test_what_telegram_refuses_is_refused(
    telegram: TelegramServer, params: dict[str, Any], code: int, words: str
) -> None:
    telegram.open_private(42)
    telegram.open_private(43).is_blocked = True
    if "entities" in params:
        names = ("type", "offset", "length")
        params = {**params, "entities": [dict(zip(names, one, strict=True)) for one in params["entities"]]}
    answer = await ask(telegram, "sendMessage", **params)
    assert answer["error_code"] == code
    assert words in answer["description"]
    assert telegram.messages(42) == []


async def test_other_methods_and_tokens_are_unknown(telegram: TelegramServer) -> None:
    assert (await ask(telegram, "sendNothing"))["error_code"] == 404
    assert (await ask(telegram, "getMe", token="1:x"))["error_code"] == 401


async def test_a_message_of_a_person_is_not_the_bots_to_edit(telegram: TelegramServer) -> None:
    await telegram.private(42, "x")
    assert (
        "can't be edited" in (await ask(telegram, "editMessageText", chat_id=42, message_id=1, text="y"))["description"]
    )
    assert "not found" in (await ask(telegram, "editMessageText", chat_id=42, message_id=9, text="y"))["description"]
