"""The real command in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import urllib.error
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

HANG_SECONDS = 60
"""Only guards against hanging for ever; nothing here is a promise about speed."""
REPOSITORY = Path(__file__).resolve().parents[2]
TRUNKLINE = str(Path(sys.executable).with_name("trunkline"))
ADDRESS = re.compile(r"health +(http://\S+)/ready")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process, without anything of this machine's that would configure a gateway."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TRUNKLINE_") and not name.endswith("_API_KEY")
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **(extra or {})}


async def command(
    *arguments: str, stdin: str = "", extra: Mapping[str, str] | None = None, cwd: Path = REPOSITORY
) -> tuple[int, str, str]:
    """Run `trunkline` to its end; return its exit code, output and errors."""
    process = await asyncio.create_subprocess_exec(
        TRUNKLINE, *arguments,
        stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment(extra), cwd=cwd,
    )  # fmt: skip
    async with asyncio.timeout(HANG_SECONDS):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


class Launched(Protocol):
    """A process that runs; as much of `asyncio.subprocess.Process` as is used here."""

    pid: int
    stdout: asyncio.StreamReader | None
    stderr: asyncio.StreamReader | None

    @property
    def returncode(self) -> int | None:
        """Its exit code, or None while it runs."""
        ...

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        ...


Launch = Callable[[Sequence[str], Mapping[str, str], Path], Awaitable[Launched]]
"""Starts a gateway with arguments, an environment and a working directory."""


async def trunkline(arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Launched:
    """Start the installed command."""
    return await asyncio.create_subprocess_exec(
        TRUNKLINE, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, env=environment, cwd=cwd
    )


class Gateway:
    """`trunkline run` with its own data and configuration, to be started, stopped and killed.

    `launch` starts another command that takes the same arguments and says the same when it runs.
    """

    def __init__(
        self, folder: Path, configuration: str, *, extra: Mapping[str, str] | None = None, launch: Launch = trunkline
    ) -> None:
        self.data = folder / "data"
        self.config = folder / "trunkline.toml"
        self.config.write_text(f"[http]\nport = 0\n{configuration}")
        self.extra = extra
        self.output: list[str] = []
        self.address = ""
        self._launch = launch
        self._process: Launched | None = None
        self._reading: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Gateway:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    @property
    def database(self) -> Path:
        """The file of its store."""
        return self.data / "trunkline.db"

    @property
    def runs(self) -> bool:
        """Whether its process has not ended."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    async def start(self, arguments: Sequence[str] = ()) -> None:
        """Start it and wait until it says that it runs."""
        places = ("--config", str(self.config), "--data", str(self.data))
        command = ("run", *places, *arguments)
        self._process = await self._launch(command, environment(self.extra), self.config.parent)
        up = asyncio.Event()
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._reading = [
            asyncio.create_task(self._read(self._process.stdout, up)),
            asyncio.create_task(self._read(self._process.stderr, up)),
        ]
        async with asyncio.timeout(HANG_SECONDS):
            await up.wait()
        assert any("stops it." in line for line in self.output), "it did not start:\n" + "".join(self.output)

    async def ready(self) -> None:
        """Wait until every channel receives."""
        async with asyncio.timeout(HANG_SECONDS):
            while await asyncio.to_thread(self._status, "/ready") != 200:
                await asyncio.sleep(0.05)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop in good order and return its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return await self._ended()

    async def kill(self) -> None:
        """End it as a power cut does."""
        if self.runs:
            self.signal(signal.SIGKILL)
            await self._ended()

    def signal(self, number: int) -> None:
        """Send it a signal and do not wait."""
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait until it has ended by itself and return its exit code."""
        return await self._ended()

    async def said(self, words: str) -> None:
        """Wait until it has said words."""
        async with asyncio.timeout(HANG_SECONDS):
            while not any(words in line for line in self.output):
                await asyncio.sleep(0.02)

    async def _ended(self) -> int:
        assert self._process is not None
        async with asyncio.timeout(HANG_SECONDS):
            code = await self._process.wait()
            await asyncio.gather(*self._reading)
        return code

    async def _read(self, stream: asyncio.StreamReader, up: asyncio.Event) -> None:
        while line := (await stream.readline()).decode():
            self.output.append(line)
            if found := ADDRESS.search(line):
                self.address = found[1]
            if "stops it." in line:
                up.set()
        up.set()

    def _status(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.address + path, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code
