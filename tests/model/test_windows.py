"""What is known of models: their windows, and safe guesses."""

from __future__ import annotations

import pytest

from gateway.model.options import ModelOptions
from gateway.model.windows import SIZES, info


@pytest.mark.parametrize(
    ("id", "window", "max_output", "vision"),
    [
        ("openai:gpt-5-mini", 400_000, 100_000, True),
        ("openai:gpt-4o-mini", 128_000, 16_384, True),
        ("openai:gpt-4", 8_192, 2_048, False),
        ("openrouter:openai/gpt-4.1", 1_000_000, 32_768, True),
        ("anthropic:claude-haiku-4-5", 200_000, 50_000, True),
        ("anthropic:claude-sonnet-5-5", 1_000_000, 64_000, True),
        ("xai:unheard-of", 128_000, 8_192, False),
        ("ollama:llama3.2", 8_192, 2_048, False),
        ("ollama:gpt-oss", 8_192, 2_048, False),
        ("echo", 128_000, 8_192, False),
    ],
)
def test_a_model_has_the_sizes_of_its_family(id: str, window: int, max_output: int, vision: bool) -> None:
    known = info(id, ModelOptions())
    assert (known.window, known.max_output, known.vision) == (window, max_output, vision)


def test_a_window_of_the_settings_wins_and_leaves_room_for_a_history() -> None:
    known = info("ollama:llama3.2", ModelOptions(windows={"ollama:llama3.2": 4_000}))
    assert (known.window, known.max_output) == (4_000, 1_000)
    assert info("ollama:other", ModelOptions(windows={"ollama:llama3.2": 4_000})).window == 8_192


def test_a_limit_of_the_settings_holds_for_every_model_and_raises_only_what_is_a_guess() -> None:
    assert info("openai:gpt-5", ModelOptions(max_output=500)).max_output == 500
    assert info("anthropic:claude-3-5-haiku", ModelOptions(max_output=20_000)).max_output == 8_192
    assert info("xai:unheard-of", ModelOptions(max_output=20_000)).max_output == 20_000


def test_every_size_leaves_room_for_a_history() -> None:
    assert all(0 < (size.max_output or 0) < size.window for size in SIZES.values())
