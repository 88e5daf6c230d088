"""What each error of python-telegram-bot means."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import httpx
import pytest
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, NetworkError, TelegramError, TimedOut

from channels.telegram.failures import asking, delivering, outcome, trouble
from channels.telegram.wire import Limited
from gateway.domain.errors import AuthFailed, Gone, NotDone, Refused, TrunklineError, Unavailable, Unknown, Unreachable


@pytest.mark.parametrize(("bounded", "means"), [(delivering, Unknown), (asking, Unavailable)])
async def test_a_call_without_end_is_ended(
    bounded: Callable[[float], AbstractAsyncContextManager[None]], means: type[TrunklineError]
) -> None:
    with pytest.raises(means):
        async with bounded(0):
            await asyncio.Event().wait()


def caused_by(error: TelegramError, cause: Exception) -> TelegramError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "means"),
    [
        (Limited(33.0), NotDone("too many requests", retry_after=33.0)),
        (Limited(None), NotDone("too many requests")),
        (Forbidden("Forbidden: bot was kicked"), NotDone("forbidden: bot was kicked", fatal=True)),
        (ChatMigrated(-1007), NotDone("migrated to -1007", fatal=True)),
        (BadRequest("Chat not found"), NotDone("chat not found", fatal=True)),
        (BadRequest("MESSAGE TO EDIT NOT FOUND"), Gone("telegram says: message to edit not found")),
        (BadRequest("Can't parse entities: x"), NotDone("can't parse entities: x", formatting=True)),
        (BadRequest("ENTITY_BOUNDS_INVALID"), NotDone("entity_bounds_invalid", formatting=True)),
        (caused_by(NetworkError("x"), httpx.ConnectError("")), Unreachable("no connection to telegram")),
        (caused_by(TimedOut(), httpx.ConnectTimeout("")), Unreachable("no connection to telegram")),
        (caused_by(TimedOut(), httpx.PoolTimeout("")), Unreachable("no connection to telegram")),
    ],
)
def test_what_was_certainly_not_applied(error: TelegramError, means: TrunklineError) -> None:
    said = outcome(error)
    assert type(said) is type(means)
    assert str(said) == str(means)
    assert vars(said) == vars(means)


@pytest.mark.parametrize(
    "error",
    [
        caused_by(TimedOut(), httpx.ReadTimeout("")),
        caused_by(TimedOut(), httpx.WriteTimeout("")),
        caused_by(NetworkError("x"), httpx.RemoteProtocolError("")),
        caused_by(NetworkError("x"), httpx.ReadError("")),
        NetworkError("Bad Gateway"),
        TelegramError("Invalid server response"),
    ],
)
def test_what_may_have_been_applied(error: TelegramError) -> None:
    assert type(outcome(error)) is Unknown
    assert type(trouble(error)) is Unavailable


def test_what_a_failed_question_means() -> None:
    assert type(trouble(InvalidToken())) is AuthFailed
    assert type(outcome(InvalidToken())) is AuthFailed
    assert type(trouble(BadRequest("x"))) is Refused
    limited = trouble(Limited(5.0))
    assert isinstance(limited, Unavailable)
    assert limited.retry_after == 5
