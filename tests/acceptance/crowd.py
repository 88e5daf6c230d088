"""Many people at once, each in a chat of their own, who write when they like."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from tests.acceptance.chats import Chat, SlackChat, SlackThread, TelegramChat, TelegramGroup
from tests.acceptance.world import World

TOOLS = ("", "", "", " use:note", " use:look use:note")
"""What else a message asks for."""
STOPS = 0.1
"""How often somebody says stop right after a message."""


@dataclass
class Person:
    """Somebody with a chat, and what they have written in it."""

    name: str
    chat: Chat
    written: list[str] = field(default_factory=list)
    stops: int = 0

    async def write(self, messages: int, pause: float, chance: random.Random) -> None:
        """Write so many messages, with pauses of that many seconds at the most.

        A platform promises no order between a message that it must tell again and the next one. So the next is written
        when the one before is received; where it is answered is another matter.
        """
        for number in range(messages):
            await asyncio.sleep(chance.random() * pause)
            text = f"{self.name} {number}{chance.choice(TOOLS)}"
            self.written.append(text)
            await self.chat.say(text)
            await self.chat.received()
            if chance.random() < STOPS:
                self.stops += 1
                await self.chat.say(self.chat.stop)
                await self.chat.received()


def crowd(world: World, size: int) -> list[Person]:
    """Return so many people, a quarter of them in each kind of chat."""
    people = []
    for number in range(size):
        user = world.slack.add_user(f"p{number}")
        kinds = (
            SlackChat(world.slack, user),
            SlackThread(world.slack, user, world.general),
            TelegramChat(world.telegram, 1000 + number),
            TelegramGroup(world.telegram, 1000 + number),
        )
        people.append(Person(f"p{number}", kinds[number % len(kinds)]))
    return people
