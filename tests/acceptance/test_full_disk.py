"""A full disk: nothing is lost, nothing is acknowledged that is not kept, and all goes on once there is room."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

from tests.acceptance.gateway import HANG_SECONDS
from tests.acceptance.world import World, a_world


def fill(world: World) -> None:
    """Let no file of the gateway grow beyond what it is, as on a full disk; its log goes to a pipe."""
    largest = max(path.stat().st_size for path in world.gateway.data.rglob("*") if path.is_file())
    resource.prlimit(world.gateway.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))


def make_room(world: World) -> None:
    """Let files grow again."""
    resource.prlimit(world.gateway.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def exhausted(world: World) -> None:
    """Wait until the gateway has said that it cannot keep a message."""
    async with asyncio.timeout(HANG_SECONDS):
        while not any("cannot be used at the moment" in line for line in world.gateway.output):
            await asyncio.sleep(0.05)


def answered(world: World) -> list[str]:
    """Return the words of the person that the answers in the chat repeat, however these were split and joined."""
    words = " ".join(world.telegram.messages(222)).split()
    return [word for word in words if word not in ("answer", "to:")]


async def test_messages_sent_while_the_disk_is_full_are_answered_once_when_there_is_room(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        await world.gateway.start()
        await world.gateway.ready()
        await world.telegram.private(111, "before")
        await world.telegram.until_shown(111, 1)
        fill(world)
        sent = [f"{number} {'full ' * 700}" for number in range(40)]
        for text in sent:
            await world.telegram.private(222, text)
        await exhausted(world)
        before = world.history("telegram:111")
        make_room(world)
        await world.telegram.private(111, "after")
        await world.telegram.until_shown(111, 2)
        async with asyncio.timeout(HANG_SECONDS):
            while len([text for role, text in world.history("telegram:222") if role == "user"]) < len(sent):
                await asyncio.sleep(0.05)
        assert before == [("user", "before"), ("assistant", "answer to: before")]
        asked = [text for role, text in world.history("telegram:222") if role == "user"]
        assert asked == sent
        async with asyncio.timeout(HANG_SECONDS):
            while len(answered(world)) < len(" ".join(sent).split()):
                await asyncio.sleep(0.05)
        assert world.telegram.messages(111) == ["answer to: before", "answer to: after"]
        assert await world.gateway.stop() == 0
        assert answered(world) == " ".join(sent).split()
        answers = [text for role, text in world.history("telegram:222") if role == "assistant"]
        assert " ".join(world.telegram.messages(222)).split() == " ".join(answers).split()
        assert world.rows("PRAGMA integrity_check")[0][0] == "ok"
