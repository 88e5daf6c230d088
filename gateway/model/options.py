"""The settings of language models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, SecretStr, StringConstraints

ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
BaseUrl = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]", strip_whitespace=True)]
BUILT_IN = ("echo", "scripted")
"""Providers that are part of the gateway and need no key."""


class ProviderOptions(BaseModel):
    """How to reach one provider. A name that is not well known needs a `base_url` and is taken as OpenAI-compatible."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    api_key: SecretStr | None = None
    base_url: BaseUrl | None = None


class ModelOptions(BaseModel):
    """Which models answer, and how patiently. Model ids are written `provider:model`.

    `fallback` answers when a model is unavailable before it has said anything. `timeout_seconds` bounds the silence
    between two pieces of an answer. `windows` gives the context window of a model id, in tokens; `max_output` asks
    every model for no more than so many tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    default: str = "echo"
    fallback: str | None = None
    timeout_seconds: float = Field(default=120, gt=0)
    retries: int = Field(default=2, ge=0, le=10)
    providers: dict[ProviderName, ProviderOptions] = Field(default_factory=dict)
    windows: dict[str, PositiveInt] = Field(default_factory=dict)
    max_output: PositiveInt | None = None
