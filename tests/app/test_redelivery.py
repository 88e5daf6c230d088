"""The same Slack post, through the real adapter and the real store, however and whenever Slack repeats it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from channels.slack.adapter import SlackChannel
from channels.slack.options import SlackOptions
from gateway.app.core import Core, open_core
from gateway.app.working import working
from gateway.config.load import load_settings
from gateway.ports.sessions import SessionQuery
from tests.clock import ManualClock
from tests.loopback.slack import SlackServer


async def test_a_post_repeated_after_six_minutes_and_after_an_hour_gives_one_turn(tmp_path: Path) -> None:
    clock = ManualClock()
    async with SlackServer() as slack:
        alice = slack.add_user("alice")
        environment = {
            "TRUNKLINE_CHANNELS__SLACK__BOT_TOKEN": slack.bot_token,
            "TRUNKLINE_CHANNELS__SLACK__APP_TOKEN": slack.app_token,
            "TRUNKLINE_CHANNELS__SLACK__API_URL": slack.api_url,
            "TRUNKLINE_CHANNELS__SLACK__PEOPLE": f'["{alice}"]',
        }
        settings = load_settings(None, environment, {"slack": lambda: SlackOptions}, tmp_path)
        channel = SlackChannel("slack", settings.channels["slack"].options, clock)  # type: ignore[arg-type]
        async with open_core(settings, {"slack": channel}, name="test", environment={}, clock=clock) as core:
            receiving = asyncio.create_task(core.receivers.run())
            async with working(core):
                await slack.wait_connected()
                await slack.dm(alice, "hello")
                chat = slack.dm_channel(alice)
                await slack.until(lambda: len(slack.answers(chat)) == 1)
                for seconds in (0, 368, 55 * 60):
                    await clock.advance(seconds)
                    await slack.repeat_last()
                    await slack.until(lambda: not slack.unacked)
                await slack.dm(alice, "and?")
                await slack.until(lambda: len(slack.answers(chat)) == 2)
                assert await _texts(core) == ["hello", slack.answers(chat)[0], "and?", slack.answers(chat)[1]]
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)
            await core.receivers.close()


async def _texts(core: Core) -> list[str]:
    (session,) = (await core.store.sessions.list(SessionQuery())).sessions
    return [row.text for row in await core.store.sessions.page(session.id)]
