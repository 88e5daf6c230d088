"""The settings of a workspace."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from channels.slack.options import SlackOptions

GOOD = {"bot_token": "xoxb-1", "app_token": "xapp-1"}


def test_the_address_of_slack_is_the_default_and_ends_in_one_slash() -> None:
    assert SlackOptions.model_validate(GOOD).api_url == "https://slack.com/api/"
    assert SlackOptions.model_validate(GOOD | {"api_url": "https://slack-gov.com/api"}).api_url.endswith(".com/api/")
    assert SlackOptions.model_validate(GOOD | {"api_url": "http://127.0.0.1:1/api//"}).api_url.endswith("1/api/")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"bot_token": "xapp-secret"}, "xoxb-"),
        ({"app_token": "xoxb-secret"}, "xapp-"),
        ({"api_url": "ftp://slack.com"}, "https"),
        ({"api_url": "http://slack.com/api/"}, "in the clear"),
        ({"bot_tokn": "xoxb-secret"}, "bot_tokn"),
    ],
)
def test_a_wrong_setting_is_told_without_its_value(change: dict[str, str], word: str) -> None:
    with pytest.raises(ValidationError, match=word) as raised:
        SlackOptions.model_validate(GOOD | change)
    assert "secret" not in str(raised.value).replace("SecretStr", "")


def test_tokens_are_not_printed() -> None:
    assert "xoxb-1" not in repr(SlackOptions.model_validate(GOOD))


def test_reading_the_options_loads_no_slack_library() -> None:
    code = "import sys, channels.slack.options; print([m for m in sys.modules if m.startswith(('slack', 'aiohttp'))])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
