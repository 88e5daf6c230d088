"""From Markdown to messages of Telegram: text with entities, never a parse mode. Pure.

Entities are made here, so Telegram never parses markup and cannot choke on it: a lone backtick, `List<String>` or a
link with three underscores arrive as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from telegramify_markdown import convert
from telegramify_markdown.config import RenderConfig

from channels.telegram.split import Entity, split
from gateway.domain.outbound import Choice, Outbound, Part
from gateway.domain.text import whole

_SHOWN = {
    "bold", "italic", "underline", "strikethrough", "spoiler", "code", "pre", "text_link", "blockquote",
    "expandable_blockquote",
}  # fmt: skip
MOST_FENCES = 400
# Each level of a list or quote is indented anew, so a line of two thousand dashes would become hundreds of messages.
_DEEP = re.compile(r"^[ \t]*(?:(?:[-*+>]|\d{1,9}[.)])[ \t]*){12}", re.MULTILINE)
_DEFINITION = re.compile(r"^ {0,3}(\[)([^\]\n]+)\]:", re.MULTILINE)
_BARS = re.compile(r"^(?!\s*\|).*\|\|.*$", re.MULTILINE)


def render(outbound: Outbound) -> Sequence[Part]:
    """Return the messages that show `outbound`; none for a blank text without choices."""
    source = whole(outbound.text)
    only_for = {"only_for": outbound.only_for} if outbound.only_for else {}
    text, entities = formatted(source)
    text = "\n\n".join(filter(None, [text, _numbered(outbound.choices)]))
    return [
        Part(text=piece, plain=piece, details={**only_for, **({"entities": inside} if inside else {})})
        for piece, inside in split(text, entities)
    ]


def formatted(source: str) -> tuple[str, list[Entity]]:
    """Return the visible text of some Markdown, and its entities; the Markdown itself if it cannot be converted."""
    if not source.strip():
        return "", []
    if _DEEP.search(source) or source.count("```") > MOST_FENCES:
        return source.strip("\n"), []
    mask = _Mask(source)
    try:
        text, found = convert(mask.apply(source), latex_escape=False, config=_config())
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        # A converter that stumbles over a text must not cost the answer.
        return source.strip("\n"), []
    text = mask.remove(text)
    if not text.strip():
        return source.strip("\n"), []
    return text, [entity for one in found if (entity := _clean(mask.within(one.to_dict())))]


def _config() -> RenderConfig:
    config = RenderConfig.isolated()
    symbols = config.markdown_symbol
    for level in range(1, 7):
        setattr(symbols, f"heading_level_{level}", "")
    symbols.unordered_list_item = "•"
    symbols.task_completed, symbols.task_uncompleted = "☑", "☐"
    return config


def _numbered(choices: Sequence[Choice]) -> str:
    return whole("\n".join(f"{number}. {choice.label}" for number, choice in enumerate(choices, 1)))


def _clean(entity: Mapping[str, Any]) -> Entity | None:
    """Return an entity as we send it, or None for one we do not show."""
    if entity["type"] not in _SHOWN or entity["length"] <= 0:
        return None
    # A link to `tg://user?id=1` pings that person; what a model writes must ping nobody.
    if entity["type"] == "text_link" and str(entity.get("url", "")).lower().startswith("tg:"):
        return None
    if "language" in entity:
        language = str(entity["language"]).split()
        return {
            **{key: entity[key] for key in entity if key != "language"},
            **({"language": language[0]} if language else {}),
        }
    return dict(entity)


class _Mask:
    """Hides from the converter what it would take for markup and drop.

    Each hidden character becomes one of a private area that the text does not use, of the same UTF-16 length, so that
    entities stay right. Hidden are `<` (tags), `$` (formulas), `||` outside of tables (spoilers), `[^` (footnotes), and
    the bracket of a link definition that nothing refers to.
    """

    def __init__(self, text: str) -> None:
        unused = self._unused(text)
        self._stand_ins = {character: next(unused) for character in "<$|["}
        self._back = str.maketrans({stand_in: character for character, stand_in in self._stand_ins.items()})

    def apply(self, text: str) -> str:
        """Return the text with stand-ins."""
        text = _BARS.sub(lambda line: line[0].replace("||", 2 * self._stand_ins["|"]), text)
        text = _DEFINITION.sub(lambda found: self._definition(found, text.lower()), text)
        text = text.replace("[^", f"{self._stand_ins['[']}^")
        return text.replace("<", self._stand_ins["<"]).replace("$", self._stand_ins["$"])

    def remove(self, text: str) -> str:
        """Return the text with the characters back in place."""
        return text.translate(self._back)

    def within(self, entity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an entity with the characters back in its texts."""
        return {key: self.remove(value) if isinstance(value, str) else value for key, value in entity.items()}

    def _definition(self, found: re.Match[str], lowered: str) -> str:
        is_used = lowered.count(f"[{found[2].lower()}]") > 1
        return found[0] if is_used else found[0].replace("[", self._stand_ins["["], 1)

    @staticmethod
    def _unused(text: str) -> Iterator[str]:
        used = set(text)
        return (character for code in range(0xE000, 0xF900) if (character := chr(code)) not in used)
