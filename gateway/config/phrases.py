"""The words of the gateway itself, as a file of the owner's: TOML, one `name = "sentence"` for each that is replaced.

Read as strictly as the settings, because a sentence is needed when something else has gone wrong already. It is filled
in by `str.format`, which can do more than put a word in its place (`{id.__class__}`, `{id:>999999}`); so braces stand
around nothing but the names that the English sentence has. Any of these may be left out: a language may not need it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from gateway.config.files import read_toml
from gateway.config.problems import LONGEST_SHOWN, Problem, raise_problems, spoken_value, unknown
from gateway.domain.phrases import ENGLISH, Phrases
from gateway.domain.text import visible

_SENTENCES: dict[str, str] = asdict(ENGLISH)
_BRACES = re.compile(r"\{[^{}]*\}?|\}")


def phrases_file(path: Path, configuration: Path | None) -> Path:
    """Return the file that `path` means: a relative one begins at the folder of the configuration, if that is a file.

    It belongs to the configuration, so it is found from wherever a command is run.
    """
    # Path.expanduser would raise where there is no such user; this leaves the name, and then no file is found.
    path = Path(os.path.expanduser(path))
    return path if configuration is None else configuration.parent / path


def read_phrases(path: Path) -> Phrases:
    """Return the English phrases with those of the file in their place.

    Raises `ConfigError` that names the file and every phrase that is wrong, with what was expected and what came.
    """
    written = read_toml(path)
    raise_problems([problem for name, value in written.items() if (problem := _problem(path, name, value))])
    return replace(ENGLISH, **written)


def toml_lines(phrases: Phrases) -> Iterator[str]:
    """Yield the phrases as the lines of a file that `read_phrases` takes."""
    for name, sentence in asdict(phrases).items():
        # JSON's escapes are TOML's too, but for an emoji: in ASCII, JSON has it as two halves, which TOML refuses.
        yield f"{name} = {json.dumps(sentence, ensure_ascii=False)}"


def _problem(path: Path, name: str, value: Any) -> Problem | None:
    setting = f"{path}: {name}"
    if name not in _SENTENCES:
        return unknown(setting, name, _SENTENCES, "phrase")
    if not isinstance(value, str):
        return Problem(setting, f"expected a text, got {spoken_value(value, secret=False)}")
    if not value.strip():
        return Problem(setting, "expected a sentence, got an empty text")
    if visible(value) != value:
        return Problem(setting, "expected a text, got one with control characters")
    return _stray_braces(setting, value, _BRACES.findall(_SENTENCES[name]))


def _stray_braces(setting: str, sentence: str, known: list[str]) -> Problem | None:
    stray = next((braces for braces in _BRACES.findall(sentence) if braces not in known), None)
    if stray is None:
        return None
    expected = f"no braces but {' and '.join(known)}" if known else "no braces"
    return Problem(setting, f"expected {expected}, got {spoken_value(stray[:LONGEST_SHOWN], secret=False)}")
