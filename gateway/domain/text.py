"""What holds for text wherever it comes from and goes to: whole characters, cuts between them, controls shown.

A person sees one character where Unicode may have many: an accent on a letter, a family joined from four faces, a flag
of two letters. And outside the first 65,536 a character is two halves in UTF-16, which JSON can tear apart.
"""

from __future__ import annotations

import unicodedata

LONGEST_CHARACTER = 64
"""How far back a cut looks for the start of a character; more joined marks than that are no character of a language."""

_JOINER = "\u200d"
_JOINED = f"\u200c{_JOINER}\uff9e\uff9f"
"""Not marks, and yet part of the character before: joiners, and the sound marks of narrow Japanese letters."""
_VIRAMA = 9
"""The combining class of the sign that joins two consonants of an Indic script into one character."""
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_REORDERING = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029)}


def whole(text: str) -> str:
    """Return `text` as one that can be sent and stored: halves joined, a replacement for a lone half and for NUL.

    It stays as long as it was in UTF-16 units, so that a platform's offsets into it stay right.
    """
    if not text.isascii():
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\x00", "\ufffd")


def visible(text: str) -> str:
    """Return `text` with every control character but line ends and tabs written as an escape.

    A text from a chat could otherwise drive the terminal that shows it: set its title, write to the clipboard, hide a
    line.
    """
    return text.replace("\r\n", "\n").translate(_CONTROLS)


def inert(text: str) -> str:
    """Return `text`, which may have several lines, as one that can be stored and does nothing where it is shown.

    As `visible`, and what would show it in another order than it was written in, or end a line, is an escape too.
    """
    return visible(whole(text)).translate(_REORDERING)


def one_line(text: str) -> str:
    """Return `text` as one line that does nothing where it is shown, each run of white space as one space."""
    return inert(" ".join(text.split()))


def size(count: float) -> str:
    """Return a number of bytes as people write it, in thousands, as disks are sold: `214 kB`."""
    for unit in ("B", "kB", "MB"):
        if round(count) < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def last_cut(text: str, start: int, limit: int) -> int:
    """Return the last place up to `limit` where a cut parts nothing that a person sees as one character.

    Always after `start`; it is `limit` itself where there is no such place within `LONGEST_CHARACTER` before it.
    """
    nearest = max(start, limit - LONGEST_CHARACTER)
    return next((cut for cut in range(limit, nearest, -1) if not is_inside_character(text, cut)), limit)


def is_inside_character(text: str, cut: int) -> bool:
    """Tell whether a cut at this index would part what a person sees as one character."""
    if not 0 < cut < len(text):
        return False
    before, after = text[cut - 1], text[cut]
    if before == "\r":
        return after == "\n"
    if _continues(after) or before == _JOINER:
        return True
    if unicodedata.combining(before) == _VIRAMA:
        return unicodedata.category(after) == "Lo"
    return _is_flag_letter(after) and _flag_letters_before(text, cut) % 2 == 1


def _continues(character: str) -> bool:
    """Tell whether a character belongs to the one before it: accents, joiners, skin tones, tags, parts of Hangul."""
    if character.isascii():
        return False
    if unicodedata.category(character).startswith("M") or character in _JOINED:
        return True
    is_skin_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    is_tag = "\U000e0020" <= character <= "\U000e007f"
    return is_skin_tone or is_tag or "\u1160" <= character <= "\u11ff"


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, cut: int) -> int:
    first = cut
    while first > 0 and _is_flag_letter(text[first - 1]):
        first -= 1
    return cut - first
