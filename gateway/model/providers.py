"""Who serves a model id: the well-known providers, the configured ones, and where each of them is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from gateway.domain.errors import AuthFailed, Refused
from gateway.model.options import BUILT_IN, ModelOptions, ProviderOptions
from gateway.ports.model import Style

RESPONSES = ("openai-responses", "responses")
"""Names of OpenAI's other API, which is not served."""


class OutOfCredit(AuthFailed):
    """The provider's account has no credit left: only the owner can mend it, but another model may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProvider:
    """A provider that needs no `base_url`. `variable` holds its key, None if it takes none; `example` is a model."""

    base_url: str
    variable: str | None
    example: str
    style: Style = Style.OPENAI


KNOWN: Mapping[str, KnownProvider] = {
    "openai": KnownProvider(base_url="https://api.openai.com/v1", variable="OPENAI_API_KEY", example="gpt-5"),
    "anthropic": KnownProvider(
        base_url="https://api.anthropic.com",
        variable="ANTHROPIC_API_KEY",
        example="claude-sonnet-5-5",
        style=Style.ANTHROPIC,
    ),
    "cerebras": KnownProvider(
        base_url="https://api.cerebras.ai/v1", variable="CEREBRAS_API_KEY", example="gpt-oss-120b"
    ),
    "deepseek": KnownProvider(
        base_url="https://api.deepseek.com", variable="DEEPSEEK_API_KEY", example="deepseek-flash"
    ),
    "gemini": KnownProvider(
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        variable="GEMINI_API_KEY",
        example="gemini-2.5-pro",
    ),
    "groq": KnownProvider(
        base_url="https://api.groq.com/openai/v1", variable="GROQ_API_KEY", example="openai/gpt-oss-120b"
    ),
    "lmstudio": KnownProvider(base_url="http://localhost:1234/v1", variable=None, example="qwen3-8b"),
    "mistral": KnownProvider(
        base_url="https://api.mistral.ai/v1", variable="MISTRAL_API_KEY", example="mistral-large-latest"
    ),
    "ollama": KnownProvider(base_url="http://localhost:11434/v1", variable=None, example="llama3.2"),
    "openrouter": KnownProvider(
        base_url="https://openrouter.ai/api/v1", variable="OPENROUTER_API_KEY", example="openai/gpt-5"
    ),
    "together": KnownProvider(
        base_url="https://api.together.xyz/v1", variable="TOGETHER_API_KEY", example="openai/gpt-oss-120b"
    ),
    "xai": KnownProvider(base_url="https://api.x.ai/v1", variable="XAI_API_KEY", example="grok-4"),
}
HOMES = {"gpt": "openai", "chatgpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude": "anthropic"}
"""Where a model lives whose name was written without its provider, by the beginning of the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A provider that can be called. The key and the URL, which may hold one too, are never printed."""

    provider: str
    style: Style
    base_url: str = field(repr=False)
    api_key: str | None = field(repr=False)


def split_id(model: str, options: ModelOptions) -> tuple[str, str]:
    """Return the provider and the name in a model id; raise `Refused` for an id that nobody serves."""
    provider, separator, name = model.partition(":")
    if provider in RESPONSES:
        raise Refused(
            f"{provider}: is not served, because its reasoning items cannot be stored yet; use openai:{name} instead"
        )
    if provider == "echo":
        if separator:
            raise Refused(f"expected echo by itself, got {model!r}")
        return provider, provider
    if separator and not name.strip():
        raise Refused(f"expected a model after {provider}:, got {model!r}")
    if not separator:
        raise Refused(f"expected a model id like openai:gpt-5, got {model!r}{_hint(_home(model, options))}")
    if provider not in KNOWN and provider != "scripted" and not _reachable(provider, options):
        raise Refused(
            f"no provider {provider!r} is known; a server of your own needs model.providers.{provider}.base_url"
            f"{_hint(_nearest(provider, options))}"
        )
    return provider, name


def style_of(provider: str) -> Style:
    """Return whose rules this provider's histories must follow."""
    return KNOWN[provider].style if provider in KNOWN else Style.OPENAI


def endpoint(provider: str, options: ModelOptions, environment: Mapping[str, str]) -> Endpoint:
    """Return where the provider is reached; raise `AuthFailed` if its key is missing or cannot be one."""
    known, given = KNOWN.get(provider), options.providers.get(provider, ProviderOptions())
    base_url = given.base_url or (known and environment.get(f"{provider.upper()}_BASE_URL"))
    key = given.api_key.get_secret_value() if given.api_key else ""
    if not key and known and known.variable:
        key = environment.get(known.variable, "")
    key = key.strip()
    if not key and known and known.variable and not base_url:
        raise AuthFailed(f"no key for {provider}: set {known.variable} or model.providers.{provider}.api_key")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise AuthFailed(f"the key for {provider} holds characters that no key has; copy it again")
    where = base_url or (known.base_url if known else "")
    return Endpoint(provider=provider, style=style_of(provider), base_url=where, api_key=key or None)


def suggestions(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the model ids that the keys in the environment would allow; nothing is called to find out."""
    return tuple(
        f"{provider}:{known.example}"
        for provider, known in KNOWN.items()
        if known.variable and environment.get(known.variable, "").strip()
    )


def _reachable(provider: str, options: ModelOptions) -> bool:
    given = options.providers.get(provider)
    return given is not None and given.base_url is not None


def _nearest(provider: str, options: ModelOptions) -> str | None:
    names = [*KNOWN, *BUILT_IN, *(name for name in options.providers if _reachable(name, options))]
    return next(iter(get_close_matches(provider.lower(), names, n=1)), None)


def _home(name: str, options: ModelOptions) -> str | None:
    provider = next((home for beginning, home in HOMES.items() if name.startswith(beginning)), None)
    return f"{provider}:{name}" if provider else _nearest(name, options)


def _hint(guess: str | None) -> str:
    return f"; did you mean {guess}?" if guess else ""
