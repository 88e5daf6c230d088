"""Builds the providers' clients, each with the retries and time limit of the settings, and nothing of their own.

The libraries take a second of CPU each to import, so each is imported when its first client is built.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from httpx2 import Timeout

from gateway.model.options import ModelOptions
from gateway.model.providers import KNOWN, Endpoint
from gateway.ports.model import Style

if TYPE_CHECKING:
    from pydantic_ai.models import Model as LibraryModel
    from pydantic_ai.settings import ModelSettings

CONNECT_SECONDS = 10.0
NO_KEY = "none"
"""Sent to servers that need no key: the library refuses to send nothing."""


class Client(ABC):
    """An open client of one provider."""

    @abstractmethod
    def model(self, name: str) -> LibraryModel[Any]:
        """Return the library's model of this name."""

    @abstractmethod
    def settings(self, max_output: int | None, most: int) -> ModelSettings:
        """Return the settings of a call; `most` is the model's own limit of output, for those who must name one."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""


class OpenAIClient(Client):
    """Speaks chat completions to OpenAI or to a server that copies it."""

    def __init__(self, endpoint: Endpoint, options: ModelOptions) -> None:
        from openai import AsyncOpenAI
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai import OpenAIProvider
        from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

        self._sdk = AsyncOpenAI(
            api_key=endpoint.api_key or NO_KEY,
            base_url=endpoint.base_url,
            max_retries=options.retries,
            timeout=_timeout(options),
        )
        profile = OpenAIModelProfile(
            # A stream that ends without a reason was cut off; only servers nobody knows may be so careless.
            openai_chat_streaming_requires_finish_reason=endpoint.provider in KNOWN,
        )
        self._provider: OpenAIProvider | OpenAICompatibleProvider
        if endpoint.provider == "openai":
            self._provider = OpenAIProvider(openai_client=self._sdk)
        else:
            # Servers that copy OpenAI mostly know the older name of this setting only.
            profile["openai_chat_supports_max_completion_tokens"] = False
            self._provider = OpenAICompatibleProvider(endpoint.provider, openai_client=self._sdk)
        self._profile = profile

    def model(self, name: str) -> LibraryModel[Any]:
        """Return the library's model of this name."""
        from pydantic_ai.models.openai import OpenAIChatModel

        return OpenAIChatModel(name, provider=self._provider, profile=self._profile)

    def settings(self, max_output: int | None, most: int) -> ModelSettings:
        """Return the settings of a call: a limit only if one was asked for, since thinking counts against it too."""
        return {"max_tokens": max_output} if max_output else {}

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()


class AnthropicClient(Client):
    """Speaks messages to Anthropic."""

    def __init__(self, endpoint: Endpoint, options: ModelOptions) -> None:
        from anthropic import AsyncAnthropic
        from pydantic_ai.providers.anthropic import AnthropicProvider

        self._sdk = AsyncAnthropic(
            api_key=endpoint.api_key or NO_KEY,
            base_url=endpoint.base_url,
            max_retries=options.retries,
            timeout=_timeout(options),
        )
        self._provider = AnthropicProvider(anthropic_client=self._sdk)
        # Reading it imports it: here in a thread, and not in the loop at the first request.
        _ = self._sdk.beta.messages

    def model(self, name: str) -> LibraryModel[Any]:
        """Return the library's model of this name."""
        from pydantic_ai.models.anthropic import AnthropicModel

        return AnthropicModel(name, provider=self._provider)

    def settings(self, max_output: int | None, most: int) -> ModelSettings:
        """Return the settings of a call. The prompt is cached, as a replay's beginning stays put from turn to turn."""
        return {"max_tokens": max_output or most, "cache": True}

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()


def open_client(endpoint: Endpoint, options: ModelOptions) -> Client:
    """Return a client for the endpoint; nothing is sent."""
    kind = AnthropicClient if endpoint.style is Style.ANTHROPIC else OpenAIClient
    client = kind(endpoint, options)
    # What a first model imports is imported now, in the thread this is called in.
    client.model("any")
    return client


def _timeout(options: ModelOptions) -> Timeout:
    # A model may think for long before its first word, but a host that is there answers a connection at once.
    return Timeout(options.timeout_seconds, connect=min(CONNECT_SECONDS, options.timeout_seconds))
