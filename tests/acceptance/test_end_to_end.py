"""The whole, for real: two platforms, a model, and the command in a process of its own."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.acceptance.world import World, a_world
from tests.loopback.models_answers import Fault, spoken


def said(request: dict[str, Any]) -> list[str]:
    """Return what was said in a request to the model, without the system prompt and the gateway's own lines."""
    return [spoken(message["content"]) for message in request["messages"] if message["role"] != "system"]


async def slack_shows(world: World, channel: str, count: int, thread: str | None = None) -> None:
    """Wait until a chat or thread shows so many answers."""
    await world.slack.until(lambda: len(world.slack.answers(channel, thread)) >= count)


async def three_turns_each(world: World) -> str:
    """Two people on each platform, interleaved, each waiting for the answer before going on; return Bob's thread."""
    slack, telegram = world.slack, world.telegram
    thread = ""
    for n in range(1, 4):
        await slack.dm(world.alice, f"alice {n}")
        ts = await slack.mention(world.bob, world.general, f"bob {n}", thread_ts=thread or None)
        thread = thread or ts
        await telegram.private(111, f"carol {n}")
        await telegram.private(222, f"dave {n}")
        await slack_shows(world, slack.dm_channel(world.alice), n)
        await slack_shows(world, world.general, n, thread)
        await telegram.until_shown(111, n)
        await telegram.until_shown(222, n)
    return thread


def answers(person: str, count: int) -> list[str]:
    return [f"answer to: {person} {n}" for n in range(1, count + 1)]


async def test_two_people_on_each_platform_are_answered_and_remembered_over_a_restart(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        slack, telegram, models, gateway = world.slack, world.telegram, world.models, world.gateway
        await gateway.start()
        await gateway.ready()
        thread = await three_turns_each(world)
        assert slack.answers(slack.dm_channel(world.alice)) == answers("alice", 3)
        assert slack.answers(world.general, thread) == answers("bob", 3)
        assert slack.answers(world.general) == []
        assert telegram.messages(111) == answers("carol", 3)
        assert telegram.messages(222) == answers("dave", 3)

        assert await gateway.stop() == 0
        await gateway.start()
        await gateway.ready()
        before = len(models.requests)
        await slack.dm(world.alice, "alice 4")
        await telegram.private(222, "dave 4")
        await slack_shows(world, slack.dm_channel(world.alice), 4)
        await telegram.until_shown(222, 4)

        fourth = {said(request)[-1]: said(request) for request in models.requests[before:]}
        for person in ("alice", "dave"):
            earlier = [text for n in range(1, 4) for text in (f"{person} {n}", f"answer to: {person} {n}")]
            assert fourth[f"{person} 4"] == [*earlier, f"{person} 4"]
        assert models.refusals == []
        assert len(models.requests) == 14
        assert await gateway.stop(signal.SIGINT) == 0


async def test_the_same_post_and_the_same_update_give_one_turn_however_often_they_come(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        slack, telegram, models, gateway = world.slack, world.telegram, world.models, world.gateway
        await gateway.start()
        await gateway.ready()
        thread = await slack.mention(world.bob, world.general, "once")
        await telegram.private(111, "once")
        await slack_shows(world, world.general, 1, thread)
        await telegram.until_shown(111, 1)
        for restart in (False, True):
            if restart:
                await gateway.stop()
                await gateway.start()
                await gateway.ready()
            for envelope in list(slack.sockets.envelopes[:2]):
                await slack.sockets.deliver(envelope.payload, type=envelope.type, retry=1)
            await telegram.requeue()
            await slack.until(lambda: not slack.unacked)
            await slack.dm(world.alice, f"after {restart}")
            await slack_shows(world, slack.dm_channel(world.alice), 1 + restart)
            await telegram.private(222, f"after {restart}")
            await telegram.until_shown(222, 1 + restart)
        assert slack.answers(world.general, thread) == ["answer to: once"]
        assert telegram.messages(111) == ["answer to: once"]
        assert len(models.requests) == 2 + 4


async def test_a_stranger_reaches_nothing_but_one_line(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        slack, telegram, models, gateway = world.slack, world.telegram, world.models, world.gateway
        mallory = slack.add_user("mallory")
        await gateway.start()
        await gateway.ready()
        for n in range(3):
            await slack.dm(mallory, f"let me in {n}")
            await slack.mention(mallory, world.general, f"let me in {n}")
            await telegram.private(666, f"let me in {n}")
            await telegram.group(-1001, 666, f"let me in {n}")
        chat = slack.dm_channel(mallory)
        await slack.until(lambda: not slack.unacked and len(slack.answers(chat)) == 1)
        await telegram.until_shown(666, 1)
        await slack.dm(world.alice, "still there?")
        await slack_shows(world, slack.dm_channel(world.alice), 1)
        assert mallory in slack.answers(chat)[0]
        assert "666" in telegram.messages(666)[0]
        assert len(slack.answers(chat)) + len(slack.private_notes(world.general, mallory)) == 1
        assert telegram.messages(-1001) == []
        assert len(models.requests) == 1
        assert [row["key"] for row in world.rows("SELECT key FROM sessions")] == [
            f"slack:{slack.dm_channel(world.alice)}"
        ]


async def test_a_model_that_fails_is_told_honestly_once_and_never_remembered_as_words(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        telegram, models, gateway = world.telegram, world.models, world.gateway
        await gateway.start()
        await gateway.ready()
        models.fail_next(Fault.DROPPED, 1)
        await telegram.private(111, "first")
        await telegram.until_shown(111, 1)
        models.fail_next(Fault.UNAUTHORIZED, 1)
        await telegram.private(111, "second")
        await telegram.until_shown(111, 2)
        await telegram.private(111, "third")
        await telegram.until_shown(111, 3)
        assert telegram.messages(111)[-1].startswith("answer to:")
        assert all(message.startswith("Sorry") for message in telegram.messages(111)[:2])
        assert said(models.requests[-1]) == ["first\n\nsecond\n\nthird"]
        assert [role for role, _ in world.history("telegram:111")] == ["user", "user", "user", "assistant"]


async def test_no_token_is_in_what_the_process_says(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        gateway = world.gateway
        await gateway.start()
        await gateway.ready()
        await world.telegram.private(111, "hello")
        await world.telegram.until_shown(111, 1)
        await world.telegram.stop()
        await gateway.stop()
        text = "".join(gateway.output)
        for secret in (world.slack.bot_token, world.slack.app_token, world.telegram.token, "sk-test-local"):
            assert secret not in text
        await world.telegram.start()
