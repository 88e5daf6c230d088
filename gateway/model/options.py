"""The settings of language models."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PositiveInt, SecretStr, StringConstraints

ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]*$")]


def _address(text: str) -> str:
    text = text.strip()
    if not re.match(r"https?://[^\s/]", text):
        raise ValueError("expected an address that begins with http:// or https://")
    return text


BaseUrl = Annotated[str, AfterValidator(_address)]
BUILT_IN = ("echo", "scripted")
"""Providers that are part of the gateway and need no key."""


ThinkingOption = Literal["auto", "off", "low", "medium", "high"]


class ProviderOptions(BaseModel):
    """How to reach one provider. A name that is not well known needs a `base_url` and is taken as OpenAI-compatible."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    api_key: SecretStr | None = None
    """The key of a provider, such as `model.providers.openai`; a well-known one's may be in its own variable too, such
    as `OPENAI_API_KEY`."""
    base_url: BaseUrl | None = None
    """The address of a provider that speaks OpenAI's language, such as a local server."""


class ModelOptions(BaseModel):
    """`[model]`: which models answer, and how patiently. Model ids are written `provider:model`."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    default: str = "echo"
    """The model that answers, as `provider:model`."""
    fallback: str | None = None
    """The model that answers when the other is unavailable before it has said anything."""
    timeout_seconds: float = Field(default=120, gt=0)
    """How long the model may be silent between two pieces of an answer."""
    retries: int = Field(default=2, ge=0, le=10)
    """How often a call that said nothing is tried again."""
    thinking: ThinkingOption = "auto"
    """How much a model that can think does so; `auto` leaves it to the model, and `off` sends it none of its earlier
    thinking either."""
    providers: dict[ProviderName, ProviderOptions] = Field(default_factory=dict)
    """How each provider is reached, by its name."""
    windows: dict[str, PositiveInt] = Field(default_factory=dict)
    """The context window of a model, in tokens, where it is not known: `windows = { "local:llama" = 32000 }`."""
    max_output: PositiveInt | None = None
    """How many tokens an answer may have at most; by default what the model allows."""
