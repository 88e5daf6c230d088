"""Stopping: in good order within a bound, at once when asked twice, and gone on with afterwards."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.acceptance.world import World, a_world


async def held_in_a_model_call(world: World) -> None:
    """Start the gateway, and bring a turn into a model call that does not end."""
    await world.gateway.start()
    await world.gateway.ready()
    world.models.hold()
    await world.telegram.private(111, "take your time")
    await world.models.arrived(1)


async def test_a_turn_cut_short_by_a_stop_is_gone_on_with_and_not_counted_as_a_crash(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        world.gateway.config.write_text(
            world.gateway.config.read_text().replace("sweep_seconds = 1", "sweep_seconds = 1\ndrain_seconds = 0.2")
        )
        for _ in range(3):
            await held_in_a_model_call(world) if not world.models.asked else await world.gateway.start()
            assert await world.gateway.stop() == 0
        world.models.release()
        await world.gateway.start()
        await world.telegram.until_shown(111, 1)
        assert await world.gateway.stop() == 0
        assert world.telegram.messages(111) == ["answer to: take your time"]
        assert [(row["state"], row["attempt"]) for row in world.rows("SELECT * FROM turns")] == [("done", 1)]


async def test_a_stop_waits_for_the_answer_that_is_on_its_way(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await held_in_a_model_call(world)
        world.gateway.signal(signal.SIGTERM)
        await world.gateway.said("nothing more is taken in")
        world.models.release()
        assert await world.gateway.ended() == 0
        assert world.telegram.messages(111) == ["answer to: take your time"]


async def test_a_second_signal_ends_the_process_at_once_loses_nothing_and_is_no_crash(tmp_path: Path) -> None:
    """However often somebody is impatient, the message is not taken for one that kills the process."""
    async with a_world(tmp_path) as world:
        for times in range(3):
            if times == 0:
                await held_in_a_model_call(world)
            else:
                await world.gateway.start()
                await world.models.arrived(times + 1)
            world.gateway.signal(signal.SIGTERM)
            await world.gateway.said("nothing more is taken in")
            world.gateway.signal(signal.SIGTERM)
            assert await world.gateway.ended() == 128 + signal.SIGTERM
            world.gateway.output.clear()
        world.models.release()
        await world.gateway.start()
        await world.telegram.until_shown(111, 1)
        assert world.telegram.messages(111) == ["answer to: take your time"]
        assert await world.gateway.stop() == 0
        assert [(row["state"], row["attempt"]) for row in world.rows("SELECT * FROM turns")] == [("done", 1)]


async def test_a_message_that_kills_the_process_twice_is_set_aside_and_the_chat_goes_on(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await held_in_a_model_call(world)
        await world.gateway.kill()
        await world.gateway.start()
        await world.models.arrived(2)
        await world.gateway.kill()
        world.models.release()
        await world.gateway.start()
        await world.telegram.until_shown(111, 1)
        await world.telegram.private(111, "and this?")
        await world.telegram.until_shown(111, 2)
        aside, answer = world.telegram.messages(111)
        assert "put it aside" in aside
        assert answer.endswith("and this?")
        assert len(world.models.requests) == 3
