"""A command on a pseudo-terminal, as a person has it."""

from __future__ import annotations

import asyncio
import os
import pty
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.acceptance.gateway import HANG_SECONDS, TRUNKLINE, environment

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class Terminal:
    """What the command shows, and the keys a person presses."""

    def __init__(self, descriptor: int, process: Process) -> None:
        self.process = process
        self._descriptor = descriptor
        self._raw = ""
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    @property
    def text(self) -> str:
        """All that was shown, without control sequences."""
        return _CONTROL.sub("", self._raw).replace("\r", "")

    async def shows(self, words: str, times: int = 1) -> None:
        """Wait until words were shown so many times."""
        async with asyncio.timeout(HANG_SECONDS):
            while self.text.count(words) < times:
                self._more.clear()
                await self._more.wait()

    def press(self, keys: str) -> None:
        """Type something."""
        os.write(self._descriptor, keys.encode())

    async def leave(self, key: str = "\x04") -> int:
        """Press Ctrl-D, again if it was lost, until the command has ended; return its exit code.

        While something is printed above the prompt the terminal is not in raw mode, and swallows the key.
        """
        async with asyncio.timeout(HANG_SECONDS):
            while self.process.returncode is None:
                self.press(key)
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(self.process.wait()), 1)
        return self.process.returncode

    async def ended(self) -> int:
        """Wait for the command's end and return its exit code."""
        async with asyncio.timeout(HANG_SECONDS):
            return await self.process.wait()

    def close(self) -> None:
        """Take the terminal away."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:  # how Linux says that nobody has the other end open any more
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self._descriptor)
        # A prompt may ask the terminal where the cursor is, and waits for the answer.
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self._descriptor, b"\x1b[1;1R")
        self._raw += data.decode(errors="replace")
        self._more.set()


@asynccontextmanager
async def on_a_terminal(*arguments: str) -> AsyncIterator[Terminal]:
    """Run `trunkline` on a pseudo-terminal while the body runs."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        TRUNKLINE, *arguments, stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment({"TERM": "xterm"}), start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    terminal = Terminal(ours, process)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        terminal.close()
