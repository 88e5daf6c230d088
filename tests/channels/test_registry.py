"""Which kinds of channel there are, and what is said when one cannot be used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel

from channels.console.adapter import ConsoleChannel
from channels.console.options import ConsoleOptions
from channels.registry import KINDS, Kind, find_kind, load_adapter, load_options, load_setup, options_by_kind
from gateway.domain.errors import ConfigError
from tests.clock import ManualClock


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_loads_and_makes_nothing_yet(kind: str) -> None:
    assert issubclass(load_options(kind), BaseModel)
    assert load_adapter(kind).kind == kind  # type: ignore[attr-defined]


def test_a_channel_is_made_from_its_name_options_and_clock() -> None:
    channel = load_adapter("console")("home", ConsoleOptions(), ManualClock())
    assert isinstance(channel, ConsoleChannel)
    assert channel.name == "home"


def test_an_unknown_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        ConfigError, match="expected one of slack, telegram, console, got 'telegramm'; did you mean tele"
    ):
        find_kind("telegramm")


def test_a_missing_library_is_told_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "slack_bolt", None)
    for name in [name for name in sys.modules if name.startswith(("channels.slack", "slack_bolt."))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match=r"kind slack needs slack_bolt\S*, .*: pip install 'trunkline\[slack\]'"):
        load_adapter("slack")


def test_a_missing_module_of_ours_is_a_bug_and_rises() -> None:
    broken = Kind(adapter="channels.nowhere:X", options="channels.nowhere:Y", extra="slack")
    with pytest.raises(ModuleNotFoundError):
        load_adapter("broken", {"broken": broken})


def test_what_guides_the_owner_is_loaded_where_a_kind_has_it() -> None:
    assert load_setup("console") is None
    guided = Kind(adapter="x:X", options="x:Y", setup="channels.console.options:ConsoleOptions")
    assert load_setup("guided", {"guided": guided}) is ConsoleOptions


def test_reading_the_options_of_every_kind_loads_no_platform_library() -> None:
    code = (
        "import sys; from channels.registry import options_by_kind;"
        "[load() for load in options_by_kind().values()];"
        "sys.exit(bool({'slack_bolt', 'slack_sdk', 'telegram', 'prompt_toolkit'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert set(options_by_kind()) == set(KINDS)
