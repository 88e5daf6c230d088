"""`run` and `chat`: settings, logs, signals, and the loop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gateway.app.channels import build_channels, options_by_kind, terminal_rules
from gateway.app.chat import Ending, run_chat
from gateway.app.core import Core, check_models
from gateway.app.data import use_data_directory
from gateway.app.run import run_gateway
from gateway.cli.banner import banner
from gateway.config.kinds import TERMINAL
from gateway.config.load import load_settings
from gateway.config.settings import Settings
from gateway.config.tree import PREFIX
from gateway.domain.errors import ConfigError
from gateway.logs.setup import configure
from gateway.ports.channel import Channel
from gateway.wakeups.clock import SystemClock

LOG_FILE = "trunkline.log"
OPTIONS = {"--model": f"{PREFIX}MODEL__DEFAULT", "--port": f"{PREFIX}HTTP__PORT"}
"""The variable that each option stands for."""

T = TypeVar("T")


def run_command(
    *, config: Path | None, data: Path | None, model: str | None, port: int | None, environment: Mapping[str, str]
) -> None:
    """Run the gateway until it is stopped."""
    settings = _settings(config, data, environment, {"--model": model, "--port": port})
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with _logs(settings, environment, chatting=has_terminal, stderr_level="warning" if has_terminal else None):
        check_models(settings, environment)
        _until_stopped(lambda stop: _run(settings, environment, stop, has_terminal))


def chat_command(
    name: str, *, config: Path | None, data: Path | None, model: str | None, environment: Mapping[str, str]
) -> bool:
    """Chat until the input ends; return whether the last message was answered."""
    settings = _settings(config, data, environment, {"--model": model})
    interactive = sys.stdin.isatty() and sys.stdout.isatty()

    def greet() -> None:
        if interactive:
            print(f"Chatting with {settings.model.default}. Ctrl-D ends the chat; it is remembered.")  # noqa: T201

    with _logs(settings, environment, chatting=True, stderr_level="error"):
        check_models(settings, environment)
        ending = _until_stopped(
            lambda stop: run_chat(
                settings, name, environment=environment, stop=stop, interactive=interactive, greet=greet
            )
        )
    if ending is Ending.UNSHOWN:
        print("trunkline: the answer could not be printed; the next chat prints it first", file=sys.stderr)  # noqa: T201
    return ending is Ending.ANSWERED


async def _run(settings: Settings, environment: Mapping[str, str], stop: asyncio.Event, has_terminal: bool) -> None:
    channels = build_channels(settings, SystemClock(), terminal=has_terminal)

    def started(core: Core, address: str | None) -> None:
        for line in banner(settings, channels, environment, address, has_terminal=has_terminal):
            print(line, flush=True)  # noqa: T201

    await run_gateway(
        settings,
        channels,
        environment=environment,
        stop=stop,
        started=started,
        ended=lambda name: _terminal_ended(channels, name, stop),
        extra_rules=terminal_rules(channels),
    )


def _terminal_ended(channels: Mapping[str, Channel], name: str, stop: asyncio.Event) -> None:
    """Stop when the terminal was the only way in; with other channels the gateway goes on without it."""
    if all(channel.kind == TERMINAL for channel in channels.values()):
        stop.set()
    elif channels[name].kind == TERMINAL:
        print("The terminal chat has ended; the gateway runs on. Ctrl-C stops it.", flush=True)  # noqa: T201


def _settings(
    config: Path | None, data: Path | None, environment: Mapping[str, str], given: Mapping[str, object]
) -> Settings:
    """Read the settings; an option counts as if its setting stood in the environment, and is called by its own name."""
    overrides = {OPTIONS[name]: str(value) for name, value in given.items() if value is not None}
    try:
        settings = load_settings(config, {**environment, **overrides}, options_by_kind(), data)
    except ConfigError as error:
        text = str(error)
        for name, value in given.items():
            text = text if value is None else text.replace(OPTIONS[name], name)
        raise ConfigError("", text) from error
    use_data_directory(settings.data)
    return settings


@contextmanager
def _logs(
    settings: Settings, environment: Mapping[str, str], *, chatting: bool, stderr_level: str | None
) -> Iterator[None]:
    """Set the logs up. Where a chat owns the terminal they go to a file, and what is shown is short."""
    undo = configure(
        level=settings.logs.level,
        file=settings.logs.file or (settings.data / LOG_FILE if chatting else None),
        secrets=settings.secrets() | {key for name, key in environment.items() if name.endswith("_API_KEY") and key},
        stderr_level=stderr_level,
        brief=chatting,
    )
    try:
        yield
    finally:
        undo()


def _until_stopped(main: Callable[[asyncio.Event], Coroutine[None, None, T]]) -> T:
    """Run to the end. One signal asks for a stop in good order, a second one ends the process at once."""

    async def body() -> T:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _on_signal, stop, number)
        return await main(stop)

    return asyncio.run(body())


def _on_signal(stop: asyncio.Event, number: int) -> None:
    if stop.is_set():
        # Everything accepted is stored already, so there is nothing to lose but the wait.
        os._exit(128 + number)
    stop.set()
