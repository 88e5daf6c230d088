"""The process that forks steppers, on the other end of a `Nursery`."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import traceback

from gateway.tokens.o200k import O200kCounter
from tests.acceptance import stepper

LOADED_LATE = (
    "anyio._backends._asyncio", "certifi", "channels.slack.adapter", "channels.telegram.adapter", "fastapi",
    "gateway.model.adapter", "gateway.store.sqlite.migrations", "genai_prices.data", "httpcore", "jiter", "openai",
    "openai.lib.streaming.chat", "openai.resources.chat.completions.completions", "pydantic_ai.models.openai",
    "pydantic_ai.providers.openai", "pydantic_ai.providers.openai_compatible",
    "slack_bolt.listener_matcher.async_builtins", "uvicorn", "uvicorn.lifespan.off", "uvicorn.protocols.http.auto",
)  # fmt: skip
"""What the gateway or a library imports when it is first needed; what is missing here only costs time."""
LARGEST = 1 << 20


def _serve(control: socket.socket) -> None:
    for name in LOADED_LATE:
        importlib.import_module(name)
    O200kCounter()("load the vocabulary")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, LARGEST, 3)
        if not request:
            return
        if os.fork() == 0:
            control.close()
            _watch(json.loads(request), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _watch(request: dict[str, object], out: int, err: int, report_end: int) -> None:
    """Fork once more: this process tells how that one ends, while the one that forks goes on."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    report = socket.socket(fileno=report_end)
    pid = os.fork()
    if pid == 0:
        report.close()
        _become(request, out, err)
    os.close(out)
    os.close(err)
    report.send(str(pid).encode())
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):  # the test may be gone
        report.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(request: dict[str, object], out: int, err: int) -> None:
    """Be a process that was started with this request."""
    code: object = 1
    try:
        _enter(request, out, err)
        stepper.main()
        code = 0
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _enter(request: dict[str, object], out: int, err: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    for ours, theirs in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(ours, theirs)
        os.close(ours)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["environment"])  # type: ignore[call-overload]
    sys.argv = ["stepper", *request["arguments"]]  # type: ignore[misc]


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
