"""Pictures that stand in a row as data, and what kind of file a type names. No JSON makes anything here raise."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

_MIME = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_FAMILIES = frozenset({"image", "audio", "video"})


def kind_of(mime: str) -> str:
    """Return the kind of a file by the word the channels use for it."""
    family = mime.partition("/")[0]
    return family if family in _FAMILIES else "file"


def data_url(block: Mapping[str, Any]) -> str | None:
    """Return the data URL of a block that holds a picture itself, or None for any other block."""
    if block.get("type") != "image_url":
        return None
    url = block.get("image_url")
    if isinstance(url, Mapping):
        url = url.get("url")
    return url if isinstance(url, str) and url[:5].lower() == "data:" else None


def decoded(url: str) -> tuple[str, bytes]:
    """Return the type and the bytes of a data URL, each empty where it is not to be had."""
    head, _, body = url[5:].partition(",")
    mime, *options = head.strip().lower().split(";")
    try:
        data = unquote_to_bytes(body)
        if "base64" in (option.strip() for option in options):
            data = b64decode(b"".join(data.split()), validate=True)
    except ValueError:
        data = b""
    return mime if _MIME.fullmatch(mime) else "", data
