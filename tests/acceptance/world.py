"""Both platforms and the model around one gateway process."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.gateway import Gateway, Launch, trunkline
from tests.loopback.models import ModelServer
from tests.loopback.slack import SlackServer
from tests.loopback.telegram import TelegramServer

CONFIGURATION = """
[gateway]
system_prompt = "You are the test bot."
titles = false
{settings}

[model]
default = "local:test-model"

[model.providers.local]
base_url = "{model}"
api_key = "sk-test-local-key-0123456789"

[channels.slack]
bot_token = "{slack.bot_token}"
app_token = "{slack.app_token}"
api_url = "{slack.api_url}"
people = ["{alice}", "{bob}"]
chats = ["{general}"]

[channels.telegram]
bot_token = "{telegram.token}"
api_url = "{telegram.api_url}"
poll_seconds = 1
people = [111, 222]
chats = [-1001]
"""


@dataclass
class World:
    """Who and what there is."""

    slack: SlackServer
    telegram: TelegramServer
    models: ModelServer
    gateway: Gateway
    alice: str
    bob: str
    general: str

    def rows(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """Ask the gateway's database, beside it."""
        with closing(sqlite3.connect(f"file:{self.gateway.database}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute(sql, values).fetchall()

    def history(self, key: str) -> list[tuple[str, str]]:
        """Return role and text of every row of the sessions of a key, in order."""
        found = self.rows(
            "SELECT role, content FROM messages JOIN sessions ON sessions.id = session_id WHERE key = ? ORDER BY seq",
            key,
        )
        return [(row["role"], row["content"]) for row in found]


@asynccontextmanager
async def a_world(
    folder: Path, *, settings: str = "sweep_seconds = 1", launch: Launch = trunkline
) -> AsyncIterator[World]:
    """Set both platforms and the model up, and a gateway configured for them that is not started yet.

    `settings` are lines of its section `[gateway]`.
    """
    async with SlackServer() as slack, TelegramServer() as telegram, ModelServer() as models:
        alice, bob = slack.add_user("alice"), slack.add_user("bob")
        general = slack.add_channel("general", alice, bob)
        telegram.open_private(111)
        telegram.open_private(222)
        telegram.open_group(-1001)
        text = CONFIGURATION.format(
            slack=slack,
            telegram=telegram,
            model=models.openai_url,
            alice=alice,
            bob=bob,
            general=general,
            settings=settings,
        )
        gateway = Gateway(folder, text, launch=launch)
        try:
            yield World(slack, telegram, models, gateway, alice, bob, general)
        finally:
            await gateway.kill()
