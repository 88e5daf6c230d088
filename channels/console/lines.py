"""Where lines come from: a pipe or file, or a person at a terminal.

No thread reads: a thread that waits on standard input cannot be stopped, and would keep the process from ending.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

_CHUNK = 65536


class Lines(ABC):
    """Yields lines one by one."""

    @abstractmethod
    async def next(self) -> str | None:
        """Wait for a line and return it without its end; None once there are no more.

        Can be cancelled and called again, and loses no finished line.
        """

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold what lines need while they are waited for."""
        yield


class PipedLines(Lines):
    """Lines of a stream that is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._ended = False

    async def next(self) -> str | None:
        """Wait for a line and return it without its end; None once there are no more."""
        while "\n" not in self._text and not self._ended:
            await self._more()
        if not self._text:
            return None
        line, _, self._text = self._text.partition("\n")
        return line.removesuffix("\r")

    async def _more(self) -> None:
        descriptor = _descriptor(self._stream)
        if descriptor is None:
            # Not a real file, so it is in memory and does not wait.
            await asyncio.sleep(0)
            text = self._stream.readline()
            self._text += text
            self._ended = not text
            return
        await _readable(descriptor)
        data = os.read(descriptor, _CHUNK)
        self._text += self._decoder.decode(data, final=not data)
        self._ended = not data


class WholeInput(PipedLines):
    """All that a stream holds, as if it were one line."""

    async def next(self) -> str | None:
        """Wait for the end and return everything before it; None after that."""
        while not self._ended:
            await self._more()
        text, self._text = self._text, ""
        return text.replace("\r\n", "\n").rstrip("\n") or None


class PromptedLines(Lines):
    """Lines a person types, with editing and history, while answers are printed above the prompt."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._session: PromptSession[str] | None = None

    async def next(self) -> str | None:
        """Wait for a line and return it; None at Ctrl-D.

        Ctrl-C clears the line, or interrupts the process if there is nothing to clear.
        """
        try:
            # The process has handlers of its own for signals.
            return await self._opened().prompt_async(self._prompt, handle_sigint=False)
        except (EOFError, KeyboardInterrupt):
            return None

    def _opened(self) -> PromptSession[str]:
        if self._session is None:
            from prompt_toolkit import PromptSession

            self._session = PromptSession(key_bindings=_bindings())
        return self._session

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep what is printed meanwhile above the prompt."""
        from prompt_toolkit.patch_stdout import patch_stdout

        with patch_stdout():
            yield


def _bindings() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("c-c")
    def cancel_or_leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            # The terminal sends no signal while a prompt owns it: what Ctrl-C means is for the process to say.
            signal.raise_signal(signal.SIGINT)

    return bindings


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, AttributeError):
        return None


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(descriptor, ready.set)
    except PermissionError:
        # A regular file cannot be waited for, and never has to be.
        await asyncio.sleep(0)
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)
