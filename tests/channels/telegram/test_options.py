"""What an owner can set, and what is said about a mistake."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from channels.telegram.options import TelegramOptions

TOKEN = "123456:AAH-secret_part"


def options(**changes: Any) -> TelegramOptions:
    return TelegramOptions.model_validate({"bot_token": TOKEN, **changes})


def test_a_token_is_all_that_is_needed() -> None:
    made = options()
    assert (made.api_url, made.poll_seconds, made.bot_id) == ("https://api.telegram.org", 25, "123456")
    assert "secret" not in repr(made)


@pytest.mark.parametrize("token", ["", "AAH-secret_part", "123456:", "x:AAH-secret_part", f"{TOKEN}\n", f" {TOKEN}"])
def test_a_token_of_another_shape_is_refused_without_repeating_it(token: str) -> None:
    with pytest.raises(ValidationError) as caught:
        options(bot_token=token)
    assert "BotFather" in str(caught.value)
    assert "secret_part" not in str(caught.value)


def test_an_address_loses_its_last_slash() -> None:
    assert options(api_url="http://127.0.0.1:8081/").api_url == "http://127.0.0.1:8081"


@pytest.mark.parametrize(
    "changes",
    [{"api_url": "api.telegram.org"}, {"api_url": "ftp://a"}, {"poll_seconds": 0}, {"poll_seconds": 51}, {"tokn": "x"}],
)
def test_other_mistakes_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        options(**changes)


def test_reading_options_loads_no_telegram_library() -> None:
    code = "import sys, channels.telegram.options; print([m for m in ('telegram', 'httpx') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
