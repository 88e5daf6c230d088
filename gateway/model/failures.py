"""Turns what goes wrong in the providers' libraries into errors a caller can act on.

The messages name the provider, the model and the provider's own error code, and nothing else of what came or went:
the cause is kept, since it may quote the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from pydantic_ai import exceptions as library

from gateway.domain.errors import (
    AuthFailed,
    ContextOverflow,
    Filtered,
    Refused,
    ThinkingRefused,
    TrunklineError,
    Unavailable,
)
from gateway.model.providers import OutOfCredit

FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})
FILTER_WORDS = "content filtering policy"
THINKING_WORDS = ("thinking", "reasoning", "signature")
TRY_LATER = frozenset({408, 409, 425})
TOO_LARGE = 413


@contextmanager
def translated(label: str, *, sent_thinking: bool) -> Iterator[None]:
    """Raise the library's errors as ours. `sent_thinking` says that the request replayed thinking."""
    try:
        yield
    except library.ModelAPIError as error:
        raise _from_api(error, label, sent_thinking=sent_thinking) from error
    except library.AgentRunError as error:
        raise Unavailable(f"{label} answered in a form that cannot be read") from error
    except library.UserError as error:
        raise Refused(f"{label} cannot be asked this way") from error
    except TimeoutError as error:
        raise Unavailable(f"{label} fell silent") from error
    except (httpx2.HTTPError, httpx2.StreamError) as error:
        raise Unavailable(f"the connection to {label} broke off") from error


def _from_api(error: library.ModelAPIError, label: str, *, sent_thinking: bool) -> TrunklineError:
    if isinstance(error, library.ModelContextWindowExceededError) or _status(error) == TOO_LARGE:
        return ContextOverflow(f"the request is larger than {label} takes")
    if isinstance(error, library.ModelAuthenticationError):
        return AuthFailed(f"{label} refused the key{_code(error)}")
    if isinstance(error, library.ModelQuotaExceededError):
        return OutOfCredit(f"the account for {label} has no credit left{_code(error)}")
    if isinstance(error, library.ModelNotFoundError):
        return Refused(f"there is no {label}: its name or the provider's base_url is wrong{_code(error)}")
    if _is_filter(error):
        return Filtered(f"the content filter of {label} refused the request")
    if sent_thinking and _is_about_thinking(error):
        return ThinkingRefused(f"{label} refused the thinking that was sent back")
    if isinstance(error, library.ModelRequestRejectedError):
        return Refused(f"{label} refused the request{_code(error)}")
    return _later(error, label)


def _later(error: library.ModelAPIError, label: str) -> TrunklineError:
    if isinstance(error, library.ModelConnectionError):
        return Unavailable(f"the connection to {label} failed")
    status = _status(error)
    if status is not None and 400 <= status < 500 and status not in TRY_LATER:
        if not isinstance(error, library.ModelRateLimitError):
            return Refused(f"{label} refused the request{_code(error)}")
        return Unavailable(f"{label} is over its rate limit{_code(error)}", retry_after=error.retry_after)
    return Unavailable(f"{label} is not available{_code(error)}", retry_after=error.retry_after)


def _status(error: library.ModelAPIError) -> int | None:
    return error.status_code if isinstance(error, library.ModelHTTPError) else None


def _code(error: library.ModelAPIError) -> str:
    parts = [f"HTTP {status}" for status in [_status(error)] if status]
    # A code is a short word; anything longer is a sentence and may quote the request.
    parts += [
        word for word in (error.provider_error_code or error.provider_error_type,) if word and word.isidentifier()
    ]
    return f" ({', '.join(parts)})" if parts else ""


def _is_filter(error: library.ModelAPIError) -> bool:
    return error.provider_error_code in FILTER_CODES or FILTER_WORDS in _said(error)


def _is_about_thinking(error: library.ModelAPIError) -> bool:
    # No provider has a code for this: the sentence of a 400 is all there is to tell it by.
    rejected = isinstance(error, library.ModelRequestRejectedError)
    return rejected and any(word in _said(error) for word in THINKING_WORDS)


def _said(error: library.ModelAPIError) -> str:
    body = error.body
    if isinstance(body, dict) and isinstance(inner := body.get("error"), dict):
        body = inner
    return str(body.get("message", "")).lower() if isinstance(body, dict) else ""
