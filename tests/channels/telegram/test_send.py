"""What is sent to Telegram, and what each refusal means."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from channels.telegram.adapter import TelegramChannel
from gateway.domain.errors import AuthFailed, Gone, NotDone, Refused, Unavailable, Unknown
from gateway.domain.keys import Route
from gateway.domain.outbound import Outbound, Part, Ref
from gateway.ports.channel import Presence
from tests.channels.telegram.harness import SkippingClock, Store, channel_for, opened, receiving
from tests.loopback.telegram import TelegramServer, Trouble

DIRECT = Route("tg", "42")


@pytest.fixture
async def channel(telegram: TelegramServer, clock: SkippingClock) -> AsyncIterator[TelegramChannel]:
    telegram.open_private(42)
    async with opened(telegram, clock) as channel:
        yield channel


async def say(channel: TelegramChannel, text: str, to: Route = DIRECT) -> list[Ref]:
    return [await channel.post(to, part, "key", False) for part in channel.render(Outbound(text=text))]


@pytest.mark.parametrize(
    "text", ["**a_b**", "`", "[x", "http://e.test/a_b_c_d", "List<String>", "# H\n\n| a | b |\n|-|-|\n| 1 | 2 |"]
)
async def test_every_markup_is_delivered_at_the_first_try(
    telegram: TelegramServer, channel: TelegramChannel, text: str
) -> None:
    await say(channel, text)
    assert len(telegram.called("sendMessage")) == 1
    assert len(telegram.messages(42)) == 1


async def test_long_texts_arrive_in_order(telegram: TelegramServer, channel: TelegramChannel) -> None:
    text = "".join(str(index % 10) for index in range(10_000))
    await say(channel, text)
    assert "".join(telegram.messages(42)) == text
    await say(channel, "👨‍👩‍👧‍👦" * 2100)
    assert "".join(telegram.messages(42)[3:]) == "👨‍👩‍👧‍👦" * 2100


async def test_an_answer_in_a_topic_goes_there_as_a_reply_without_preview(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    group = telegram.open_group(-100, topic=7)
    asked = group.add("question", topic=7, is_ours=False)
    await say(channel, "answer", Route("tg", "-100", thread="7", reply_to=str(asked.id)))
    (shown,) = telegram.chats.shown(-100, 7)
    assert (shown.text, shown.reply_to) == ("answer", asked.id)
    (call,) = telegram.called("sendMessage")
    assert '"is_disabled": true' in call.params["link_preview_options"]
    assert "parse_mode" not in call.params


async def test_an_answer_to_a_deleted_question_is_still_shown(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    telegram.open_group(-100)
    await say(channel, "answer", Route("tg", "-100", reply_to="77"))
    assert telegram.messages(-100) == ["answer"]


async def test_an_edit_to_the_same_text_is_success_and_to_a_deleted_message_gone(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    (part,) = channel.render(Outbound(text="**one**"))
    ref = await channel.post(DIRECT, part, "key", True)
    assert await channel.put(DIRECT, ref, part, None, "key", False) == ref
    await channel.drop(DIRECT, ref)
    await channel.drop(DIRECT, ref)
    with pytest.raises(Gone):
        await channel.put(DIRECT, ref, part, None, "key", False)


@pytest.mark.parametrize(
    "route", [Route("tg", "4711"), Route("tg", "C0SLACK"), Route("tg", "42", thread="9"), Route("tg", "42", thread="x")]
)
async def test_a_chat_that_is_not_there_is_fatal(channel: TelegramChannel, route: Route) -> None:
    with pytest.raises(NotDone) as caught:
        await channel.post(route, Part(text="x"), "key", False)
    assert caught.value.fatal


async def test_a_text_that_is_too_long_is_not_tried_again(channel: TelegramChannel) -> None:
    with pytest.raises(NotDone) as caught:
        await channel.post(DIRECT, Part(text="x" * 4097), "key", False)
    assert (caught.value.code, caught.value.fatal) == ("message is too long", True)


async def test_entities_that_telegram_refuses_may_pass_as_plain_text(channel: TelegramChannel) -> None:
    bad = Part(text="👍", details={"entities": [{"type": "bold", "offset": 0, "length": 1}]})
    with pytest.raises(NotDone) as caught:
        await channel.post(DIRECT, bad, "key", False)
    assert (caught.value.formatting, caught.value.fatal) == (True, False)


async def test_typing_is_shown_and_a_limit_of_it_is_told(telegram: TelegramServer, channel: TelegramChannel) -> None:
    await channel.presence(DIRECT, Presence.WORKING)
    await channel.presence(DIRECT, Presence.IDLE)
    assert telegram.chats.typing == [(42, None)]
    telegram.fail(Trouble.LIMITED, method="sendChatAction", retry_after=7)
    with pytest.raises(NotDone) as caught:
        await channel.presence(DIRECT, Presence.WORKING)
    assert caught.value.retry_after == 7
    with pytest.raises(NotDone):
        await channel.presence(Route("tg", "nowhere"), Presence.WORKING)


async def test_a_pressed_button_is_acknowledged(telegram: TelegramServer, clock: SkippingClock) -> None:
    store = Store()
    telegram.open_private(42)
    async with receiving(telegram, clock, store) as channel:
        (ref,) = await say(channel, "Sure?")
        await telegram.press(42, 42, int(ref.id), "yes")
        await store.until(1)
        await channel.answer(store.stored[0], "done " + "x" * 300)
    (answer,) = telegram.chats.answers
    assert answer["callback_query_id"].startswith("query-")
    assert len(answer["text"]) == 200


async def test_a_button_pressed_too_long_ago_is_no_error(telegram: TelegramServer, clock: SkippingClock) -> None:
    store = Store()
    telegram.open_private(42)
    async with receiving(telegram, clock, store) as channel:
        (ref,) = await say(channel, "Sure?")
        await telegram.press(42, 42, int(ref.id), "yes")
        await store.until(1)
        telegram.fail(Trouble.BAD_ENTITIES, method="answerCallbackQuery")
        await channel.answer(store.stored[0], "done")
        telegram.fail(Trouble.BROKEN, method="answerCallbackQuery")
        with pytest.raises(Unavailable):
            await channel.answer(store.stored[0], "done")


async def test_an_answer_of_no_known_shape_is_unknown(telegram: TelegramServer, channel: TelegramChannel) -> None:
    telegram.fail(Trouble.NONSENSE, method="sendMessage")
    with pytest.raises(Unknown):
        await say(channel, "hello")


async def test_the_proxy_of_the_environment_is_used(
    telegram: TelegramServer, clock: SkippingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", telegram.api_url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    behind = channel_for(telegram, clock, api_url="http://telegram.test")
    await behind.open()
    await behind.close()
    async with opened(telegram, clock):
        assert len(telegram.called("getMe")) == 2


async def test_looking_for_a_message_is_refused(channel: TelegramChannel) -> None:
    assert not channel.capabilities.find
    with pytest.raises(Refused):
        await channel.find(DIRECT, "key", datetime.now(UTC), ())


async def test_an_unknown_token_is_the_owners_to_mend_and_is_told_nowhere(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    """Case K5."""
    real, telegram.token = telegram.token, "123456:another-token"
    stranger = channel_for(telegram, clock, bot_token=real)
    with pytest.raises(AuthFailed) as caught:
        await stranger.open()
    told = "".join(traceback.format_exception(caught.value))
    assert "BotFather" in told
    assert real.partition(":")[2] not in told


async def test_a_server_that_is_not_there_is_unavailable(telegram: TelegramServer, clock: SkippingClock) -> None:
    await telegram.stop()
    with pytest.raises(Unavailable):
        await channel_for(telegram, clock).open()


async def test_a_page_of_a_proxy_does_not_say_that_the_token_is_wrong(
    telegram: TelegramServer, channel: TelegramChannel
) -> None:
    """Case K5: the page repeats the address, and with it the token."""
    telegram.fail(Trouble.LOST_PAGE)
    with pytest.raises(Unknown) as caught:
        await say(channel, "hello")
    assert telegram.token not in "".join(traceback.format_exception(caught.value))


async def test_a_channel_that_is_not_open_is_unavailable(telegram: TelegramServer, clock: SkippingClock) -> None:
    channel = channel_for(telegram, clock)
    await channel.close()
    with pytest.raises(Unavailable):
        await channel.presence(DIRECT, Presence.WORKING)


async def test_sending_works_while_receiving_waits(telegram: TelegramServer, clock: SkippingClock) -> None:
    telegram.open_private(42)
    async with receiving(telegram, clock, Store()) as channel:
        await telegram.wait_polled()
        await asyncio.gather(*(say(channel, f"number {index}") for index in range(40)))
    assert len(telegram.messages(42)) == 40
