"""The polling loop: nothing lost, nothing confirmed too early, and the truth about how it goes."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest
from loguru import logger

from gateway.domain.errors import AuthFailed
from gateway.domain.inbound import Inbound
from tests.channels.telegram.harness import SkippingClock, Store, opened, receiving
from tests.loopback.telegram import TelegramServer, Trouble, user


async def test_a_backlog_is_handled_at_start_in_order(telegram: TelegramServer, clock: SkippingClock) -> None:
    """Case E10: what came while nobody listened is not thrown away."""
    for index in range(6):
        await telegram.private(42, f"message {index}")
    store = Store()
    async with receiving(telegram, clock, store):
        await telegram.wait_polled()
    assert store.texts == [f"message {index}" for index in range(6)]
    assert telegram.confirmed_count == 6


async def test_an_update_is_confirmed_only_after_it_was_stored(telegram: TelegramServer, clock: SkippingClock) -> None:
    """Case E12: the offset is the acknowledgement."""
    reached, may_store = asyncio.Event(), asyncio.Event()

    class SlowStore(Store):
        async def __call__(self, inbound: Inbound) -> None:
            reached.set()
            await may_store.wait()
            await super().__call__(inbound)

    store = SlowStore()
    update = await telegram.private(42, "one")
    async with receiving(telegram, clock, store):
        await reached.wait()
        assert telegram.confirmed == 0
        may_store.set()
        await telegram.wait_confirmed(update)
    assert store.texts == ["one"]


async def test_a_crash_between_fetching_and_storing_loses_nothing(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    """Cases E12 and E2: what was not stored comes again, and what was is known by its key."""
    for text in ("one", "two", "three"):
        await telegram.private(42, text)
    died = asyncio.Event()

    class DyingStore(Store):
        async def __call__(self, inbound: Inbound) -> None:
            if inbound.text == "two":
                died.set()
                await asyncio.Event().wait()
            await super().__call__(inbound)

    first = DyingStore()
    async with receiving(telegram, clock, first):
        await died.wait()
    assert telegram.confirmed == 0
    second = Store()
    async with receiving(telegram, clock, second):
        await telegram.wait_polled()
    assert first.texts == ["one"]
    # "one" comes again, since Telegram was never told of it: its key makes the repeat a no-op.
    assert second.texts == ["one", "two", "three"]
    assert second.stored[0].dedupe_key == first.stored[0].dedupe_key


async def test_an_update_that_the_sink_refuses_is_tried_again_and_none_is_skipped(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    for text in ("one", "two", "three"):
        await telegram.private(42, text)
    store = Store(refuse={"two": 3})
    async with receiving(telegram, clock, store) as channel:
        await telegram.wait_polled()
        assert channel.health().counters["not_stored"] == 3
        assert channel.health().receiving
    assert store.texts == ["one", "two", "three"]
    assert store.offered == ["one", "two", "two", "two", "two", "three"]
    assert clock.waits == [1, 2, 4]


async def test_rate_limits_and_bad_gateways_are_waited_out_and_nothing_is_lost(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    telegram.fail(Trouble.LIMITED, method="getUpdates", retry_after=5)
    telegram.fail(Trouble.BAD_GATEWAY, method="getUpdates", times=10)
    await telegram.private(42, "hello")
    store = Store()
    async with receiving(telegram, clock, store) as channel:
        await telegram.wait_polled()
        assert channel.health().receiving
        assert channel.health().counters["poll_failed"] == 11
    assert store.texts == ["hello"]
    assert clock.waits[0] == 5
    assert clock.waits[1:] == [2, 4, 8, 16, 30, 30, 30, 30, 30, 30]


async def test_a_limit_that_does_not_say_how_long_is_waited_out_too(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    telegram.fail(Trouble.LIMITED, method="getUpdates", retry_after=0)
    async with receiving(telegram, clock, Store()):
        await telegram.wait_polled()
    assert clock.waits == [1]


@pytest.mark.parametrize(
    "trouble", [Trouble.DROPPED, Trouble.LOST, Trouble.BROKEN, Trouble.NONSENSE, Trouble.LOST_PAGE]
)
async def test_a_lost_answer_loses_no_update(telegram: TelegramServer, clock: SkippingClock, trouble: Trouble) -> None:
    await telegram.private(42, "one")
    telegram.fail(trouble, method="getUpdates")
    store = Store()
    async with receiving(telegram, clock, store):
        await store.until(1)
        await telegram.wait_polled()
        telegram.fail(trouble, method="getUpdates")
        telegram.drop_polls()
        await telegram.private(42, "two")
        await store.until(2)
        await telegram.wait_polled()
    assert store.texts == ["one", "two"]


async def test_a_second_poller_makes_health_red_until_it_is_gone(telegram: TelegramServer) -> None:
    class PausingClock(SkippingClock):
        def __init__(self) -> None:
            super().__init__()
            self.paused, self.go_on = asyncio.Event(), asyncio.Event()

        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if seconds > 0:
                self.paused.set()
                await self.go_on.wait()

    clock, store = PausingClock(), Store()
    async with receiving(telegram, clock, store) as channel:
        await telegram.wait_polled()
        async with receiving(telegram, SkippingClock(), Store()):
            await clock.paused.wait()
            health = channel.health()
            assert not health.receiving
            assert "another instance" in health.detail
            assert clock.waits == [1]
        clock.go_on.set()
        await telegram.private(42, "still there")
        await store.until(1)
        assert channel.health().receiving


async def test_an_update_of_an_unknown_shape_does_not_hold_up_the_next(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    await telegram.push({"message": {"message_id": {"new": "shape"}}})
    await telegram.push({"something_new": True})
    await telegram.private(42, "hello")
    store = Store()
    async with receiving(telegram, clock, store) as channel:
        await telegram.wait_polled()
        counters = channel.health().counters
    assert store.texts == ["hello"]
    assert (counters["dropped_unreadable"], counters["dropped_unsupported"]) == (1, 1)


async def test_updates_without_a_number_are_not_asked_for_in_a_hurry(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    telegram.updates.pending.append({"update_id": 0.5})
    async with receiving(telegram, clock, Store()):
        await telegram.until_called("getUpdates", 2)
    assert clock.waits[0] == 30


async def test_only_kinds_that_are_understood_are_asked_for(telegram: TelegramServer, clock: SkippingClock) -> None:
    async with receiving(telegram, clock, Store()):
        await telegram.wait_polled()
    (first, *_) = telegram.called("getUpdates")
    assert first.params["allowed_updates"] == '["message", "edited_message", "callback_query"]'
    assert "offset" not in first.params


async def test_ids_that_start_again_lower_after_a_quiet_time_are_received(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    store = Store()
    async with receiving(telegram, clock, store):
        await telegram.push({"update_id": 900_000, "message": _text(telegram, "high")})
        await store.until(1)
        await telegram.updates.end_poll()
        await telegram.push({"update_id": 10, "message": _text(telegram, "low")})
        await store.until(2)
    assert store.texts == ["high", "low"]


async def test_an_id_that_comes_back_for_another_message_after_a_quiet_time_is_another_event(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    store = Store()
    async with receiving(telegram, clock, store):
        for text in ("before", "a week later"):
            await telegram.push({"update_id": 10, "message": _text(telegram, text)})
            await store.until(len(store.stored) + 1)
            await telegram.updates.end_poll()
    first, second = store.stored
    assert first.dedupe_key != second.dedupe_key


async def test_a_refused_token_ends_receiving(telegram: TelegramServer, clock: SkippingClock) -> None:
    async with opened(telegram, clock) as channel:
        real, telegram.token = telegram.token, "123456:another-token"
        with pytest.raises(AuthFailed) as caught:
            await channel.receive(Store())
        assert "BotFather" in str(caught.value)
        assert real not in repr(caught.getrepr())
        assert not channel.health().receiving


async def test_health_is_red_before_the_first_answer_and_after_the_end(
    telegram: TelegramServer, clock: SkippingClock
) -> None:
    async with opened(telegram, clock) as channel:
        assert not channel.health().receiving
        assert channel.health().last_alive is None
    async with receiving(telegram, clock, Store()) as channel:
        await telegram.wait_polled()
        await telegram.private(42, "x")
        await telegram.wait_polled()
        health = channel.health()
        assert (health.receiving, health.detail) == (True, "")
        assert health.last_alive == health.last_inbound == clock.now()
        await clock.sleep(3600)
        assert not channel.health().receiving
    assert not channel.health().receiving


async def test_cancelling_leaves_no_task_behind(telegram: TelegramServer, clock: SkippingClock) -> None:
    async with receiving(telegram, clock, Store()):
        await telegram.wait_polled()
    await telegram.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_the_token_is_in_no_log_line_of_ours_or_of_a_library(
    telegram: TelegramServer, clock: SkippingClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Case K5."""
    lines: list[str] = []
    handler = logger.add(lines.append, level=0, diagnose=True, backtrace=True, format="{message} {extra}")
    caplog.set_level(logging.DEBUG)
    try:
        for trouble in (Trouble.BAD_GATEWAY, Trouble.DROPPED, Trouble.BROKEN, Trouble.LIMITED):
            telegram.fail(trouble, method="getUpdates")
        await telegram.private(42, "boom")
        store = Store(refuse={"boom": 1})
        async with receiving(telegram, clock, store) as channel:
            await store.until(1)
            await telegram.stop()
            with suppress(Exception):
                await channel.open()
    finally:
        logger.remove(handler)
    everything = "".join(lines) + caplog.text + "".join(record.getMessage() for record in caplog.records)
    assert "update not stored" in everything
    assert "getUpdates" in everything
    assert telegram.token.partition(":")[2] not in everything


def _text(telegram: TelegramServer, text: str) -> dict[str, object]:
    return telegram.message(telegram.open_private(42), user(42), text)
