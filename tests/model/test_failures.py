"""The library's errors become ours, and say nothing of what was sent."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
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
from gateway.model.failures import translated

BODY = {"message": "you sent: my secret text", "code": "a long sentence, my secret text"}


def http(status: int, body: object = BODY, **given: Any) -> library.ModelHTTPError:
    return library.ModelHTTPError(status, "m", body, **given)


def rejected(message: str, **given: Any) -> library.ModelAPIError:
    return library.ModelHTTPError.for_category(
        library.ModelRequestRejectedError, status_code=400, model_name="m", body={"message": message}, **given
    )


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (http(413), ContextOverflow),
        (http(408), Unavailable),
        (http(409), Unavailable),
        (http(425), Unavailable),
        (http(418), Refused),
        (http(302), Unavailable),
        (http(500), Unavailable),
        (library.ModelContextWindowExceededError("m", "too long"), ContextOverflow),
        (library.ModelAuthenticationError("m", "bad key"), AuthFailed),
        (library.ModelAPIError("m", "in the stream"), Unavailable),
        (library.ModelRequestTimeout("m", 3), Unavailable),
        (library.ModelConnectionError("m", "dropped"), Unavailable),
        (library.UnexpectedModelBehavior("odd"), Unavailable),
        (library.UserError("wrong use"), Refused),
        (TimeoutError(), Unavailable),
        (httpx2.ReadError("broken"), Unavailable),
        (httpx2.StreamClosed(), Unavailable),
        (rejected("no", provider_error_code="content_filter"), Filtered),
        (rejected("The `thinking` block is not valid"), ThinkingRefused),
        (rejected("something else"), Refused),
    ],
)
def test_an_error_of_the_library_becomes_one_of_ours(error: Exception, meant: type[TrunklineError]) -> None:
    with pytest.raises(meant) as caught, translated("openai:m", sent_thinking=True):
        raise error
    assert type(caught.value) is meant
    assert caught.value.__cause__ is error
    assert "openai:m" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_request_without_thinking_cannot_be_refused_for_it() -> None:
    with pytest.raises(Refused), translated("m", sent_thinking=False):
        raise rejected("The `thinking` block is not valid")


def test_a_code_is_told_and_a_sentence_in_its_place_is_not() -> None:
    with pytest.raises(Refused, match=r"\(HTTP 400, invalid_value\)$"), translated("m", sent_thinking=False):
        raise rejected("no", provider_error_code="invalid_value")
    with pytest.raises(Refused, match=r"\(HTTP 400\)$"), translated("m", sent_thinking=False):
        raise rejected("no", provider_error_code="you sent: my secret text")


def test_the_wait_asked_for_is_kept_and_errors_of_ours_pass() -> None:
    with pytest.raises(Unavailable) as caught, translated("m", sent_thinking=False):
        raise http(503, headers={"Retry-After": "12"})
    assert caught.value.retry_after == 12
    with pytest.raises(KeyError), translated("m", sent_thinking=False):
        raise KeyError("a bug of ours")
