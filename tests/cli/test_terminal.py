"""The terminal chat, on a real pseudo-terminal."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.acceptance.terminal import on_a_terminal


async def test_run_on_a_terminal_has_a_chat_that_answers_and_remembers(tmp_path: Path) -> None:
    for first, count in ((True, 1), (False, 3)):
        async with on_a_terminal("run", "--data", str(tmp_path), "--port", "0") as terminal:
            await terminal.shows("you>")
            assert "no language model" in terminal.text
            terminal.press("hello\r" if first else "again\r")
            await terminal.shows(f"bot> echo: {count} message")
            assert await terminal.leave() == 0


async def test_a_signal_stops_it_and_gives_the_terminal_back(tmp_path: Path) -> None:
    async with on_a_terminal("run", "--data", str(tmp_path), "--port", "0") as terminal:
        await terminal.shows("you>")
        terminal.process.send_signal(signal.SIGINT)
        assert await terminal.ended() == 0


async def test_control_c_on_an_empty_line_stops_it(tmp_path: Path) -> None:
    async with on_a_terminal("run", "--data", str(tmp_path), "--port", "0") as terminal:
        await terminal.shows("you>")
        assert await terminal.leave("\x03") == 0


async def test_chat_works_beside_a_running_terminal_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    async with on_a_terminal("run", "--data", str(tmp_path), "--port", "0") as gateway:
        await gateway.shows("you>")
        for count in (1, 3):
            async with on_a_terminal("chat", "--data", str(tmp_path)) as chat:
                await chat.shows("you>")
                chat.press("hi\r")
                await chat.shows(f"bot> echo: {count} message")
                assert await chat.leave() == 0
        assert "bot>" not in gateway.text


async def test_one_chat_belongs_to_one_terminal_at_a_time(tmp_path: Path) -> None:
    async with on_a_terminal("chat", "--data", str(tmp_path)) as first:
        await first.shows("you>")
        async with on_a_terminal("chat", "--data", str(tmp_path)) as second:
            await second.shows("already running")
            assert await second.ended() == 2
            assert f"process {first.process.pid}" in second.text
