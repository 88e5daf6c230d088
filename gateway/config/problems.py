"""What is wrong with a configuration, gathered so that an owner sees all of it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from difflib import get_close_matches
from typing import Any, NoReturn

from gateway.domain.errors import ConfigError
from gateway.domain.redaction import redact

LONGEST_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """A setting by its dotted name (or a variable), and what is wrong with it."""

    setting: str
    message: str


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one `ConfigError` for all problems, named after the first; do nothing if there are none."""
    if problems:
        _raise(problems[0], problems[1:])


def _raise(first: Problem, others: Sequence[Problem]) -> NoReturn:
    lines = [first.message, *(f"{problem.setting}: {problem.message}" for problem in others)]
    raise ConfigError(first.setting, "\n".join(lines))


def unknown(setting: str, name: str, known: Iterable[str], what: str = "setting") -> Problem:
    """Say that a name is unknown, with the nearest right one, or all of them if none is near."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return Problem(setting, f"unknown {what}; did you mean {near[0]}?")
    # A list longer than this helps nobody; the documentation has them all.
    expected = f"; expected one of {', '.join(names)}" if 0 < len(names) <= 12 else ""
    return Problem(setting, f"unknown {what}{expected}")


def spoken_value(value: Any, *, secret: bool) -> str:
    """Say what came, without showing a secret: one that was announced, or one in the wrong place."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        hidden = secret or len(value) > LONGEST_SHOWN or redact(value, ()) != value
        return "a text" if hidden else repr(value)
    if isinstance(value, int | float):
        return "a number" if secret else f"the number {value}"
    names = {dict: "a table", list: "a list", date: "a date", time: "a time", datetime: "a date"}
    return names.get(type(value), "nothing")
