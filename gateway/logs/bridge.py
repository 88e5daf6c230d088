"""Bringing the standard library's logging into our stream: each library's records, warnings, uncaught exceptions."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

from loguru import logger

if TYPE_CHECKING:
    from loguru import Record

NOISY = (
    "aiohttp.access", "aiosqlite", "anthropic", "asyncio", "httpcore", "httpcore2", "httpx", "httpx2", "markdown_it",
    "mcp", "openai", "procrastinate", "psycopg", "slack_bolt", "slack_sdk", "telegram", "urllib3", "uvicorn",
    "websockets",
)  # fmt: skip
"""Libraries that tell of each request; only their warnings are shown, unless everything is asked for."""


class InterceptHandler(logging.Handler):
    """Hands each record of the standard library to loguru, under the name of the logger it came from."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass one record on."""
        level = record.levelname if record.levelname in _LOGURU_LEVELS else record.levelno

        def keep_name(ours: Record) -> None:
            ours["name"], ours["function"], ours["line"] = record.name, record.funcName, record.lineno

        logger.patch(keep_name).opt(exception=record.exc_info).log(level, "{}", _message(record))


_LOGURU_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        # A library's format does not fit its arguments. The stream gets both, since the record may matter.
        return f"{record.msg} {record.args!r}"


def bridge(level: str, undo: ExitStack) -> None:
    """Route everything the standard library says into loguru until `undo` is closed."""
    _bridge_loggers(level, undo)
    logging.captureWarnings(True)
    undo.callback(logging.captureWarnings, False)
    _bridge_hooks(undo)


def _bridge_loggers(level: str, undo: ExitStack) -> None:
    root = logging.getLogger()
    known = [found for found in logging.root.manager.loggerDict.values() if isinstance(found, logging.Logger)]
    quiet = [logging.getLogger(name) for name in NOISY]
    for each in {root, *known, *quiet}:
        undo.callback(_restore, each, list(each.handlers), each.level, each.propagate, each.disabled)
    for each in known:
        # A library's own handler would write past the redaction.
        each.handlers, each.propagate, each.disabled = [], True, False
    root.handlers = [InterceptHandler()]
    root.setLevel(level.upper())
    for each in quiet:
        each.setLevel(logging.NOTSET if level == "debug" else max(logging.WARNING, root.level))


def _restore(
    each: logging.Logger, handlers: list[logging.Handler], level: int, propagate: bool, disabled: bool
) -> None:
    each.handlers, each.propagate, each.disabled = handlers, propagate, disabled
    each.setLevel(level)


def _bridge_hooks(undo: ExitStack) -> None:
    """Have uncaught exceptions logged: the interpreter would print them with every token in their text."""
    hooks: list[tuple[Any, str, Callable[..., None]]] = [
        (sys, "excepthook", _uncaught),
        (sys, "unraisablehook", lambda found: _log(found.exc_value, found.err_msg or "an exception was ignored")),
        (threading, "excepthook", lambda found: _log(found.exc_value, "a thread died")),
    ]
    for owner, name, hook in hooks:
        undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, hook)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        _log(error, "an exception nobody handled")


def _log(error: BaseException | None, what: str) -> None:
    logger.opt(exception=error).critical(what)
