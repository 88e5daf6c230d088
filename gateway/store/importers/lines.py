"""Reading a file of JSON lines that may be damaged: what is whole is read, and each damage costs itself.

Lines are split as bytes, at line feeds alone, so that one bad byte cannot move where the next line begins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.text import whole
from gateway.store.importers.counts import many

DEEPEST = 200
"""How deep a value may be nested; what is deeper could not be written again without exhausting the stack."""
LONGEST_NUMBER = 300
MOST_REPAIRS = 50
"""How many damages are told one by one; of the rest only the number is."""

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(r"[ \t\r\n\f\v]*")
_TORN = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_MOST_TRIES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An object and the number of the line it stands in, from 1. Two objects of one line have the same number."""

    number: int
    value: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The objects of a file in their order, and one sentence for each damage.

    `lost` are the numbers of the lines of which something was left out.
    """

    objects: Sequence[Line] = ()
    repairs: Sequence[str] = ()
    lost: Sequence[int] = ()


@dataclass(slots=True)
class Repairs:
    """Collects what is told of damage, up to a number of sentences; `lost` are the lines that cost something."""

    told: list[str] = field(default_factory=list)
    untold: int = 0
    lost: list[int] = field(default_factory=list)

    def lose(self, number: int, what: str) -> None:
        """Tell what was wrong with a line of which something was left out."""
        self.tell(number, what)
        if self.lost[-1:] != [number]:
            self.lost.append(number)

    def tell(self, number: int, what: str) -> None:
        """Tell what was wrong with a line."""
        self.say(f"line {number}: {what}")

    def say(self, sentence: str) -> None:
        """Tell what was wrong."""
        if len(self.told) < MOST_REPAIRS:
            self.told.append(sentence)
        else:
            self.untold += 1

    def all(self) -> list[str]:
        """Return what was told, and how much more there was to tell."""
        return [*self.told, f"and {many(self.untold, 'damage')} more"] if self.untold else self.told


def read_lines(data: bytes, *, first_names: Sequence[str] = ("role", "_type")) -> Lines:
    """Return every object of a file of JSON lines; nothing in it raises.

    `first_names` are the names a row may begin with: by them a row is found that stands behind a torn one in its line.
    Numbers that JSON has no form for (NaN, infinity, thousands of digits) are read as text.
    """
    repairs = Repairs()
    start = re.compile(r'\{\s*"(?:' + "|".join(map(re.escape, first_names)) + r')"\s*:')
    objects: list[Line] = []
    for number, raw in enumerate(data.removeprefix(_BOM).split(b"\n"), start=1):
        text = _text(raw, number, repairs)
        objects += (Line(number=number, value=value) for value in _objects(text, number, start, repairs))
    return Lines(objects=objects, repairs=repairs.all(), lost=repairs.lost)


def _text(raw: bytes, number: int, repairs: Repairs) -> str:
    if b"\0" in raw:
        repairs.tell(number, f"{many(raw.count(0), 'zero byte')}, left out")
        raw = raw.replace(b"\0", b"")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        repairs.tell(number, "bytes that are no UTF-8, replaced by \ufffd")
        return raw.decode(errors="replace")


def _objects(text: str, number: int, start: re.Pattern[str], repairs: Repairs) -> Iterator[dict[str, Any]]:
    values, rest = _values(text, 0)
    if rest < len(text):
        values = [value for value in values if isinstance(value, dict)] + _behind(text, rest, start)
        repairs.lose(number, f"not JSON, {'the rows around it are kept' if values else 'left out'}")
    for value in values:
        if not isinstance(value, dict):
            repairs.lose(number, "no object, left out")
        elif _is_deep(text) and _is_deeper(value):
            repairs.lose(number, "nested too deeply, left out")
        else:
            yield _whole(value) if _TORN.search(text) else value


def _values(text: str, at: int) -> tuple[list[Any], int]:
    """Return the values that follow each other from `at` on, and where the first begins that cannot be read."""
    values: list[Any] = []
    at = _skip(text, at)
    while at < len(text):
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        at = _skip(text, end)
    return values, at


def _behind(text: str, at: int, start: re.Pattern[str]) -> list[Any]:
    """Return the rows behind a torn one, if from one of them on all can be read to the end of the line."""
    for tries, found in enumerate(start.finditer(text, at + 1)):
        if tries == _MOST_TRIES:
            break
        values, rest = _values(text, found.start())
        if rest == len(text):
            return values
    return []


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _is_deep(text: str) -> bool:
    return text.count("{") + text.count("[") > DEEPEST


def _is_deeper(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inner(outer)]
        if not level:
            return False
    return True


def _inner(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _whole(value: Any) -> Any:
    """Return the value with every text as one that can be stored."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= LONGEST_NUMBER else text


def _number(text: str) -> float | str:
    number = float(text)
    return number if abs(number) != float("inf") else text


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_number, parse_constant=str, strict=False)
