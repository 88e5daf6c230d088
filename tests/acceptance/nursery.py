"""Steppers that start at once: one process has everything loaded, and each start is a fork of it.

What is started is a process of its own like any other, with its own pipes, environment and exit code. It only does not
import for two seconds first, and a test of kills starts many.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.acceptance.gateway import REPOSITORY, environment


class Child:
    """A forked stepper, as its test sees it."""

    def __init__(self, pid: int, report: socket.socket, out: asyncio.StreamReader, err: asyncio.StreamReader) -> None:
        self.pid = pid
        self.stdout: asyncio.StreamReader | None = out
        self.stderr: asyncio.StreamReader | None = err
        self.returncode: int | None = None
        self._ending = asyncio.create_task(self._end(report), name=f"end of {pid}")

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal, if it runs."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Return its exit code once it has ended."""
        return await asyncio.shield(self._ending)

    async def _end(self, report: socket.socket) -> int:
        with report:
            code = int(await asyncio.get_running_loop().sock_recv(report, 64))
        self.returncode = code
        return code


class Nursery:
    """The process that forks, as long as the body runs."""

    def __enter__(self) -> Self:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.forking", str(theirs.fileno())],
                pass_fds=[theirs.fileno()], env=environment(), cwd=REPOSITORY,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self._process.wait()

    async def launch(self, arguments: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Child:
        """Start a stepper."""
        request = json.dumps({"arguments": [*arguments], "environment": {**environment}, "cwd": str(cwd)})
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        report, report_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with report_end:
            socket.send_fds(self._control, [request.encode()], [out_end, err_end, report_end.fileno()])
        os.close(out_end)
        os.close(err_end)
        report.setblocking(False)
        pid = int(await asyncio.get_running_loop().sock_recv(report, 64))
        return Child(pid, report, await _reader(out), await _reader(err))


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    pipe = os.fdopen(descriptor, "rb", 0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
