"""The documentation lists every setting as it is, and its example works."""

from __future__ import annotations

import re
from pathlib import Path

from channels.registry import options_by_kind
from gateway.config.describe import describe
from gateway.config.load import load_settings
from gateway.store.opening import sqlite_path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.]+)` \| ([^|]+) \| ([^|]*) \| (.+) \|$")
WITHOUT_TEXTS = {"slack", "telegram"}
"""Kinds whose options may say nothing of a setting; what they do say has to stand on the page too."""
TOLD_IN_WORDS = {"gateway.system_prompt", "store.url"}
"""Settings whose default is told in words, since as a value it would help nobody."""


def documented() -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return type, default and text as the page tells them, by kind and name."""
    rows, kind = {}, ""
    for line in PAGE.splitlines():
        if line.startswith("### "):
            kind = line.partition("of kind ")[2]
        elif found := ROW.match(line):
            rows[kind, found[1]] = (found[2], found[3].strip().strip("`"), found[4])
    return rows


def test_the_page_lists_exactly_the_settings_there_are() -> None:
    rows = describe(options_by_kind())
    assert set(documented()) == {(row.kind, row.name) for row in rows}


def test_the_page_tells_each_type_and_default_as_it_is() -> None:
    actual = {(row.kind, row.name): (row.type, row.default or "must be set") for row in describe(options_by_kind())}
    told = documented()
    assert {key: told[key][:2] for key in told if key[1] not in TOLD_IN_WORDS} == {
        key: actual[key] for key in actual if key[1] not in TOLD_IN_WORDS
    }


def test_the_page_tells_what_each_setting_is_for_in_the_settings_own_words() -> None:
    own = {(row.kind, row.name): row.doc for row in describe(options_by_kind())}
    missing = {key for key, doc in own.items() if not doc}
    assert {kind for kind, _ in missing} <= WITHOUT_TEXTS
    told = {key: text for key, (_, _, text) in documented().items() if key not in missing}
    assert told == {key: doc for key, doc in own.items() if key not in missing}


def test_the_page_offers_no_store_that_is_refused() -> None:
    offered = re.findall(r"`(\w+://\S+)`", documented()["", "store.url"][2])
    assert [sqlite_path(url) for url in offered] == [Path("PATH")]


def test_the_example_works(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    file = tmp_path / "trunkline.toml"
    file.write_text(example, encoding="utf-8")
    variables = dict(re.findall(r"^(TRUNKLINE_\w+)=(.*)$", PAGE.replace("…", "a1b2-c3d4"), re.MULTILINE))
    assert len(variables) == 5
    settings = load_settings(file, variables, options_by_kind(), tmp_path)
    assert {name: channel.kind for name, channel in settings.channels.items()} == {
        "slack": "slack",
        "family": "telegram",
    }
    assert len(settings.secrets()) == 5
