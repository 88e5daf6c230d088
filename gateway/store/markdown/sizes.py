"""What people are shown of a file: its kind, its name and its size, never where it lies."""

from __future__ import annotations

import re

from gateway.domain.message import MediaRef
from gateway.domain.text import size
from gateway.store.markdown.fences import inline

_SEPARATORS = re.compile(r"[/\\]")


def media_label(file: MediaRef) -> str:
    """Return the words for a file, such as `[image: cat.png · 12 kB]`."""
    facts = (inline(_SEPARATORS.split(file.name)[-1]), "" if file.size_bytes is None else size(file.size_bytes))
    told = " · ".join(fact for fact in facts if fact)
    return f"[{inline(file.kind)}: {told}]" if told else f"[{inline(file.kind)}]"
