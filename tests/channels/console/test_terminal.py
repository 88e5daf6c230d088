"""A person at a terminal: a real process on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CTRL_C, CTRL_D = b"\x03", b"\x04"
CHAT = """
import signal
import asyncio
from channels.console.adapter import ConsoleChannel
from channels.console.options import ConsoleOptions
from gateway.domain.outbound import Part
from tests.clock import ManualClock

async def main():
    channel = ConsoleChannel("console", ConsoleOptions(), ManualClock())
    await channel.open()
    async def sink(inbound):
        if inbound.text == "cancel":
            receiving.cancel()
        await channel.post(inbound.route, Part(text=f"heard <{inbound.text}>\\x1b]0;x\\x07"), "k", False)
    receiving = asyncio.create_task(channel.receive(sink))
    await asyncio.wait([receiving])
    await channel.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    print("ended well")

# A shell that starts something in the background has it ignore this.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
"""


class Person:
    """Types at the terminal and reads the screen."""

    def __init__(self) -> None:
        self._mine, theirs = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT), "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHAT], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=ROOT
        )
        os.close(theirs)
        self.seen = ""

    def types(self, keys: bytes) -> None:
        os.write(self._mine, keys)

    def insists(self, keys: bytes, text: str) -> None:
        """Type keys until a text appears: between two prompts, what is typed may fall on neither."""
        for _ in range(20):
            self.types(keys)
            with suppress(AssertionError):
                self.waits_for(text, seconds=1)
                return
        raise AssertionError(f"{text!r} never appeared: {self.seen!r}")

    def waits_for(self, text: str, *, seconds: float = 20) -> None:
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} never appeared: {self.seen!r}"
            if select.select([self._mine], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self._mine, 65536).decode(errors="replace")
                except OSError:  # Linux says so when the other side has closed.
                    assert text in self.seen, self.seen
        self.seen = self.seen.partition(text)[2]

    def settings(self) -> list[object]:
        """How the terminal treats keys."""
        return termios.tcgetattr(self._mine)

    def leaves(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


@pytest.fixture
def person() -> Iterator[Person]:
    person = Person()
    yield person
    person.leaves()


def test_a_chat_ends_at_ctrl_d(person: Person) -> None:
    person.waits_for("you>")
    person.types(b"hello\r")
    person.waits_for("bot> heard <hello>\\x1b]0;x\\x07")
    person.waits_for("you>")
    person.types(CTRL_D)
    person.waits_for("ended well")
    assert person.process.wait(10) == 0


def test_ctrl_c_cancels_a_line_and_then_interrupts_the_process(person: Person) -> None:
    before = person.settings()
    person.waits_for("you>")
    person.types(b"not this" + CTRL_C)
    person.types(b"but this\r")
    person.waits_for("heard <but this>")
    person.waits_for("you>")
    person.insists(CTRL_C, "KeyboardInterrupt")
    assert person.process.wait(10) == -signal.SIGINT
    assert person.settings() == before


def test_a_chat_that_is_cancelled_gives_the_terminal_back(person: Person) -> None:
    before = person.settings()
    person.waits_for("you>")
    assert person.settings() != before
    person.types(b"cancel\r")
    person.waits_for("heard <cancel>")
    person.waits_for("ended well")
    assert person.process.wait(10) == 0
    assert person.settings() == before
