"""What nanobot appended to a person's message for the model alone, taken off it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.store.nanobot.names import BLANK_LINE, CONTEXT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """A row's content without what was appended, that text, and what else its marker told."""

    content: Any
    context: str
    rest: Mapping[str, Any]


def part_context(content: Any, marker: Any) -> Parted | None:
    """Return the content and what the marker says was appended, or None if the marker is none or does not fit."""
    if not isinstance(marker, Mapping) or marker.get("version") != CONTEXT_VERSION:
        return None
    suffix, blocks = marker.get("suffix"), marker.get("blocks")
    if isinstance(content, str) and isinstance(suffix, str) and suffix:
        kept = _without_suffix(content, suffix)
        return None if kept is None else Parted(content=kept, context=suffix, rest=_rest(marker, "suffix"))
    if isinstance(content, list) and isinstance(blocks, list) and blocks and content[-len(blocks) :] == blocks:
        texts = _texts(blocks)
        if texts is not None:
            kept_blocks = content[: -len(blocks)]
            return Parted(content=kept_blocks, context=BLANK_LINE.join(texts), rest=_rest(marker, "blocks"))
    return None


def _without_suffix(content: str, suffix: str) -> str | None:
    if content == suffix:
        return ""
    return content.removesuffix(BLANK_LINE + suffix) if content.endswith(BLANK_LINE + suffix) else None


def _texts(blocks: Sequence[Any]) -> list[str] | None:
    """Return the texts of the blocks, or None if one of them holds anything else."""
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    words = [text for text in texts if isinstance(text, str)]
    return words if len(words) == len(blocks) else None


def _rest(marker: Mapping[str, Any], taken: str) -> dict[str, Any]:
    return {name: value for name, value in marker.items() if name != taken}
