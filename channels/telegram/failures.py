"""What an error of python-telegram-bot means to us; the one place where it is decided.

No error made here holds an address or a token: texts are Telegram's own descriptions, or ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from telegram.error import BadRequest, ChatMigrated, Forbidden, InvalidToken, NetworkError, TelegramError

from channels.telegram.wire import CALL_SECONDS, Limited
from gateway.domain.errors import AuthFailed, Gone, NotDone, Refused, TrunklineError, Unavailable, Unknown, Unreachable

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
_GONE = ("message to edit not found", "message_id_invalid", "message to delete not found")
_FORMATTING = ("can't parse", "entit")
_UNREADABLE = (AttributeError, LookupError, TypeError)
"""What python-telegram-bot raises over an answer of a shape it does not know."""
_UNCHANGED = "message is not modified"


@asynccontextmanager
async def delivering(seconds: float = CALL_SECONDS) -> AsyncIterator[None]:
    """Bound one call that shows something, and say what became of it."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TelegramError as error:
        raise outcome(error) from error
    except TimeoutError as error:
        raise Unknown("telegram did not answer in time") from error
    except _UNREADABLE as error:
        raise Unknown("telegram's answer cannot be read") from error


@asynccontextmanager
async def asking(seconds: float = CALL_SECONDS) -> AsyncIterator[None]:
    """Bound one call that changes nothing, and say what its failure means."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TelegramError as error:
        raise trouble(error) from error
    except TimeoutError as error:
        raise Unavailable("telegram did not answer in time") from error
    except _UNREADABLE as error:
        raise Unavailable("telegram's answer cannot be read") from error


def outcome(error: TelegramError) -> TrunklineError:
    """Return what became of a call that should have shown something."""
    match error:
        case Limited():
            return NotDone("too many requests", retry_after=error.seconds)
        case InvalidToken() if is_refused_token(error):
            return refused_token()
        case ChatMigrated():
            return NotDone(f"migrated to {error.new_chat_id}", fatal=True)
        case Forbidden():
            return NotDone(_words(error), fatal=True)
        case BadRequest():
            return _bad_request(error)
        case NetworkError() if isinstance(error.__cause__, _NOT_SENT):
            return Unreachable("no connection to telegram")
    return Unknown("telegram's answer was lost, or was an error of its own")


def trouble(error: TelegramError) -> TrunklineError:
    """Return what a failed question means."""
    match error:
        case Limited():
            return Unavailable("telegram asked us to wait", retry_after=error.seconds)
        case InvalidToken() if is_refused_token(error):
            return refused_token()
        case BadRequest() | Forbidden():
            return Refused(f"telegram refused: {_words(error)}")
    return Unavailable("telegram did not answer")


def is_refused_token(error: InvalidToken) -> bool:
    """Say whether it was Telegram that refused the token, and no proxy in between with a page of its own."""
    return error.__cause__ is None


def refused_token() -> AuthFailed:
    """Return what the owner has to be told about a token that Telegram does not know."""
    return AuthFailed("telegram does not know this bot token: get a valid one from @BotFather and set it as bot_token")


def is_unchanged(error: BadRequest) -> bool:
    """Say whether an edit was refused only because the message already shows it."""
    return _UNCHANGED in _words(error)


def _bad_request(error: BadRequest) -> TrunklineError:
    # Telegram gives all of these one code and tells them apart by words alone; their letter case has changed before.
    words = _words(error)
    if any(sign in words for sign in _GONE):
        return Gone(f"telegram says: {words}")
    formatting = any(sign in words for sign in _FORMATTING)
    return NotDone(words, formatting=formatting, fatal=not formatting)


def _words(error: TelegramError) -> str:
    return error.message.lower()
