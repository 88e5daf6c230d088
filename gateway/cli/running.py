"""`run` and `chat`: settings, logs, signals, and the loop."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

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
STOPPING = "(stopping: what is being answered is finished first; Ctrl-C again leaves it to the next start)"
SET_DOWN_SECONDS = 3.0
"""How long what runs may take to be set down after a second signal."""
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
    """Run to the end. One signal asks for a stop in good order, a second one sets down at once what runs."""
    signals = _Signals()

    async def body() -> T:
        signals.listen()
        return await main(signals.stop)

    try:
        return asyncio.run(body())
    except asyncio.CancelledError:
        # A second signal is no crash: what ran was set down, and is gone on with at the next start.
        sys.stdout.flush()
        os._exit(signals.code)


class _Signals:
    """What the process is asked by signals: to stop, to do it at once, to do it whatever happens."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.code = 0

    def listen(self) -> None:
        """Take signals from now on, in the task that is to be stopped."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, task, number)

    def _on_signal(self, task: asyncio.Task[Any], number: int) -> None:
        if not self.stop.is_set():
            if sys.stderr.isatty():
                print(STOPPING, file=sys.stderr)  # noqa: T201
            self.stop.set()
        elif not self.code:
            self.code = 128 + number
            task.cancel()
            asyncio.get_running_loop().call_later(SET_DOWN_SECONDS, os._exit, self.code)
        else:
            # Everything accepted is stored already, so there is nothing to lose but the wait.
            os._exit(self.code)
