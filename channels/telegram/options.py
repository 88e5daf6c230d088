"""What an owner sets for one Telegram bot.

Importing this loads no Telegram library, so that settings are cheap to read.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]{4,}")


class TelegramOptions(BaseModel):
    """The token of the bot, and where and how it asks for updates."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    bot_token: SecretStr
    api_url: str = "https://api.telegram.org"
    """The Bot API; another address for a server of one's own."""
    poll_seconds: int = Field(default=25, ge=1, le=50)
    """How long Telegram holds a request for updates open when there are none."""

    @field_validator("bot_token")
    @classmethod
    def _looks_like_a_token(cls, token: SecretStr) -> SecretStr:
        if not _TOKEN.fullmatch(token.get_secret_value()):
            raise ValueError("expected a token like 123456:AAH-letters as @BotFather gives it, got something else")
        return token

    @field_validator("api_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("expected an address like https://api.telegram.org")
        return url.rstrip("/")

    @property
    def bot_id(self) -> str:
        """The public number in front of the token."""
        return self.bot_token.get_secret_value().partition(":")[0]
