"""Settings for what only reads the store: the tokens may be known to the gateway alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from channels.registry import options_by_kind
from gateway.config.load import load_settings
from gateway.domain.errors import ConfigError


def test_what_only_reads_the_store_needs_no_token_and_knows_which_channels_there_are(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('[channels.slack]\npeople = ["U1"]\n[channels.telegram]\nenabled = false\n')
    settings = load_settings(file, {}, options_by_kind(), tmp_path, need_channels=False)
    assert (settings.channels, settings.incomplete, settings.disabled) == ({}, ("slack",), ("telegram",))
    file.write_text("[channels.slack]\npeople = 7\nnonsense = 1\n")
    with pytest.raises(ConfigError, match="nonsense"):
        load_settings(file, {}, options_by_kind(), tmp_path, need_channels=False)
