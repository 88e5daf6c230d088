"""How much a model takes in and gives out: a small table of known models, and safe guesses for the rest."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.options import BUILT_IN, ModelOptions
from gateway.model.providers import split_id, style_of
from gateway.ports.model import ModelInfo

DEFAULT_WINDOW = 128_000
DEFAULT_MAX_OUTPUT = 8_192
# These servers cut a longer history silently, and their own default is small.
LOCAL_WINDOW = 8_192
LOCAL = ("ollama", "lmstudio")
SHARE_OF_WINDOW = 4
"""An answer takes no more than a fourth of the window, so that a small window leaves room for the history."""


@dataclass(frozen=True, slots=True)
class Size:
    """What is known of all models whose names begin alike; `max_output` is None where nothing is."""

    window: int
    max_output: int | None
    vision: bool = True


# The longest beginning that fits counts. A newer model of a family is taken to be no smaller than the family.
SIZES = {
    "chatgpt-4o": Size(128_000, 16_384),
    "claude-": Size(200_000, 32_000),
    "claude-3": Size(200_000, 4_096),
    "claude-3-5": Size(200_000, 8_192),
    "claude-3-7": Size(200_000, 64_000),
    "claude-fable-": Size(1_000_000, 64_000),
    "claude-haiku-": Size(200_000, 64_000),
    "claude-haiku-5": Size(1_000_000, 64_000),
    "claude-opus-5": Size(1_000_000, 64_000),
    "claude-sonnet-4": Size(200_000, 64_000),
    "claude-sonnet-5": Size(1_000_000, 64_000),
    "deepseek-": Size(64_000, 8_192, vision=False),
    "deepseek-flash": Size(1_000_000, 32_768, vision=False),
    "deepseek-v3": Size(128_000, 8_192, vision=False),
    "deepseek-v4": Size(1_000_000, 32_768, vision=False),
    "gemini-": Size(1_000_000, 65_536),
    "gpt-3.5": Size(16_385, 4_096, vision=False),
    "gpt-4": Size(8_192, 4_096, vision=False),
    "gpt-4-turbo": Size(128_000, 4_096),
    "gpt-4.1": Size(1_000_000, 32_768),
    "gpt-4o": Size(128_000, 16_384),
    "gpt-5": Size(400_000, 128_000),
    "gpt-5-chat": Size(128_000, 16_384),
    "gpt-5.3": Size(128_000, 16_384),
    "gpt-5.3-codex": Size(400_000, 128_000),
    "gpt-5.5": Size(1_000_000, 128_000),
    "gpt-5.6": Size(1_000_000, 128_000),
    "gpt-6": Size(1_000_000, 128_000),
    "gpt-oss": Size(131_072, 32_768, vision=False),
    "grok-3": Size(131_072, 16_384, vision=False),
    "grok-4": Size(256_000, 32_768),
    "mistral-large": Size(262_144, 16_384),
    "o1": Size(200_000, 100_000),
    "o1-mini": Size(128_000, 65_536, vision=False),
    "o3": Size(200_000, 100_000),
    "o3-mini": Size(200_000, 100_000, vision=False),
    "o4": Size(200_000, 100_000),
}


def info(model: str, options: ModelOptions) -> ModelInfo:
    """Return what is known of a model id; raise `Refused` for an id that nobody serves."""
    provider, name = split_id(model, options)
    size = _size(provider, name)
    window = options.windows.get(model, size.window)
    most = size.max_output or options.max_output or DEFAULT_MAX_OUTPUT
    return ModelInfo(
        provider=provider,
        name=name,
        window=window,
        max_output=min(options.max_output or most, most, max(1, window // SHARE_OF_WINDOW)),
        style=style_of(provider),
        vision=size.vision,
        tools=provider != "echo",
        thinking=options.thinking != "off",
        writes=provider not in BUILT_IN,
    )


def _size(provider: str, name: str) -> Size:
    # Resellers put the maker before the name: `openai/gpt-5`.
    bare = name.rpartition("/")[2]
    known = [beginning for beginning in SIZES if bare.startswith(beginning)]
    if provider in LOCAL:
        return Size(LOCAL_WINDOW, None, vision=False)
    if known:
        return SIZES[max(known, key=len)]
    return Size(DEFAULT_WINDOW, None, vision=False)
