"""Text as search sees it: what of it is indexed, what a searched word means, and the words around a match.

In scripts written without spaces a run of characters is no word, so each character is a word of its own there, and a
run that is searched for is those words one after the other. Hangul has spaces, yet particles stick to its words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.text import LONGEST_CHARACTER, last_cut

SNIPPET_LENGTH = 120
"""How many characters around the match are shown."""
SNIPPET_BEFORE = 40
"""How many of them may come before it."""
SNIPPET_SPARED = 20
"""How many may be left out at either end so that no word is cut."""
LOOKED_THROUGH = 1 << 18
"""How many characters of a row are looked through for the match; of a row with a later one the beginning is shown."""
MOST_TERMS = 8
"""How many terms are looked for when a snippet is made."""
LONGEST_TERM = 64
"""How many characters of a term are looked for then."""

_LOOKED_AT_FIRST = 1 << 14
_ACCENTS = "\u0300-\u036f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
"""They choose between shapes of one character."""

# What an index holds is taken out of it by the same text again, so these must never depend on the Unicode version that
# a Python knows, and a change of them makes an index of rows that are there already wrong until it is rebuilt.
_UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17ff"  # Khmer
    "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han, kana, bopomofo, Hangul letters
    "\uff66-\uffdc\U0001aff0-\U0001b16f"  # narrow and rare kana
)
_DERIVED = re.compile(f"([{_UNSPACED}]+)|[{_ACCENTS}{_SELECTORS}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")


def searchable(text: str) -> str:
    """Return `text` as it is indexed and searched for: unspaced characters apart, without accents that stand alone."""
    return text if text.isascii() else _DERIVED.sub(_apart, text)


def _apart(found: re.Match[str]) -> str:
    return f" {' '.join(found[1])} " if found[1] else ""


@dataclass(frozen=True, slots=True)
class Term:
    """A word that is searched for; with `is_prefix`, every word that begins so."""

    text: str
    is_prefix: bool


def terms(words: str) -> Sequence[Term]:
    """Return what is searched for, one a word. Nothing in a word means anything but an asterisk at its end."""
    return [_term(word) for word in words.split() if any(map(_is_spoken, word))]


def _term(word: str) -> Term:
    is_prefix = word.endswith("*") and _is_spoken(searchable(word[:-1]).rstrip()[-1:])
    return Term(word[:-1] if is_prefix else word, is_prefix)


def _is_spoken(character: str) -> bool:
    """Tell whether a character is part of a word: a letter, a digit, a vowel sign; an accent alone is not."""
    if not searchable(character).strip():
        return False
    category = unicodedata.category(character)
    return category[0] in "LN" or category in ("Mn", "Mc", "Co")


class Snippets:
    """Shows the words around the first match of any of the terms, whatever its letter case and accents."""

    def __init__(self, wanted: Sequence[Term]) -> None:
        self._wanted = wanted[:MOST_TERMS]
        self._folded = _Folded()
        self._patterns: dict[str, re.Pattern[str]] = {}

    def of(self, text: str) -> str:
        """Return a line of `text` itself; its beginning where no match is seen."""
        start, end = self._match(text)
        return _around(text, start, end)

    def _match(self, text: str) -> tuple[int, int]:
        for most in (_LOOKED_AT_FIRST, LOOKED_THROUGH):
            folded = text[:most].translate(self._folded)
            if found := self._pattern(_ACCENT if _ACCENT in folded else "").search(folded):
                return found.span()
            if len(text) <= most:
                break
        return 0, 0

    def _pattern(self, accent: str) -> re.Pattern[str]:
        if accent not in self._patterns:
            spelled = filter(None, (self._spelled(term, accent) for term in self._wanted))
            self._patterns[accent] = re.compile("|".join(spelled) or "(?!)")
        return self._patterns[accent]

    def _spelled(self, term: Term, accent: str) -> str:
        whole = searchable(term.text)
        words = whole[:LONGEST_TERM].translate(self._folded).replace(_ACCENT, "").split()
        if not words:
            return ""
        may_be = f"{accent}*" if accent else ""
        spelled = _BETWEEN.join("".join(re.escape(letter) + may_be for letter in word) for word in words)
        # An unspaced character is a word whatever is beside it, and makes one of what is beside it.
        before = "" if _IS_UNSPACED.match(words[0]) else f"(?<![{_SPACED}])"
        is_open = term.is_prefix or len(whole) > LONGEST_TERM or _IS_UNSPACED.match(words[-1])
        return f"{before}{spelled}" + ("" if is_open else f"(?![{_SPACED}])")


_ACCENT = "\u0301"
"""What every accent that stands alone is folded to."""
_SPACED = "!-\u0dff\u1e00-\u1fff"
"""What a word goes on with, nearly: all that is not unspaced takes milliseconds to compile, at each new search."""
_BETWEEN = " {0,32}"
"""What may be between two words of a term; bounded, and never a part of either, so that no text makes a search slow."""


class _Folded(dict[int, str]):
    """What each character is folded to, one for one: its letter without case and accents, or a blank between words."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded(chr(code))
        return folded


def _folded(character: str) -> str:
    if not _is_spoken(character):
        return " " if searchable(character) else _ACCENT
    parts = unicodedata.normalize("NFD", character)
    has_accents_only = all("\u0300" <= part <= "\u036f" for part in parts[1:])
    letter = parts[0] if has_accents_only else character
    return next((folded for folded in (letter.casefold(), letter.lower()) if len(folded) == 1), letter)


def _around(text: str, start: int, end: int) -> str:
    """Return the words of `text` around a match as one line, cut between words where there are any."""
    first = max(start - SNIPPET_BEFORE, 0)
    if first:
        near = range(first, min(first + SNIPPET_SPARED, start))
        first = next((place for place in near if text[place].isspace()), _cut(text, first))
    last = first + SNIPPET_LENGTH
    if last < len(text):
        near = range(last, max(last - SNIPPET_SPARED, min(end, last) - 1), -1)
        last = next((place for place in near if text[place].isspace()), _cut(text, last))
    shown = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"


def _cut(text: str, limit: int) -> int:
    """Return the last place up to `limit` that is not inside of what a person sees as one character."""
    nearest = max(limit - 2 * LONGEST_CHARACTER, 0)
    return nearest + last_cut(text[nearest : limit + 1], LONGEST_CHARACTER if nearest else 0, limit - nearest)
