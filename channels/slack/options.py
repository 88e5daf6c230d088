"""The settings of one Slack workspace. Loads no Slack library, so that reading a configuration stays cheap."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

DEFAULT_API_URL = "https://slack.com/api/"


def _bot_token(token: SecretStr) -> SecretStr:
    return _starting_with(token, "xoxb-", "the Bot User OAuth Token under 'OAuth & Permissions'")


def _app_token(token: SecretStr) -> SecretStr:
    return _starting_with(token, "xapp-", "an App-Level Token with connections:write under 'Basic Information'")


def _starting_with(token: SecretStr, prefix: str, place: str) -> SecretStr:
    text = token.get_secret_value().strip()
    if not text.startswith(prefix):
        raise ValueError(f"expected a token that starts with {prefix} ({place})")
    return SecretStr(text)


def _api_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("expected the https address of Slack's Web API")
    if parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise ValueError("expected https: over http the token would travel in the clear")
    return url.rstrip("/") + "/"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class SlackOptions(BaseModel):
    """How to reach one workspace: the bot's token, the app's token for Socket Mode, and where Slack is."""

    # A refused value must not be printed by the error that refuses it: it may be a token in the wrong place.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    bot_token: Annotated[SecretStr, AfterValidator(_bot_token)]
    app_token: Annotated[SecretStr, AfterValidator(_app_token)]
    api_url: Annotated[str, AfterValidator(_api_url)] = DEFAULT_API_URL
