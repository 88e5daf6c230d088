"""Counts tokens as OpenAI's o200k vocabulary does, exactly and without a network.

The vocabulary is a file beside this module: tiktoken by itself would fetch it at first use. It costs about half a
second and 90 MB to load, so it is loaded once, at the first count, and shared by all counters of the same file.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import threading
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from loguru import logger

if TYPE_CHECKING:
    from tiktoken import Encoding

VOCABULARY = Path(__file__).with_name("o200k_base.tiktoken.gz")
SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""The digest of the plain vocabulary, the one tiktoken itself checks."""

# As published with the vocabulary: it decides where a text is cut before its pieces are merged.
_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
# The library panics on half a million spaces and tabs in a row, so no longer text is given to it at once.
_PIECE = 250_000
_LOCK = threading.Lock()


class VocabularyDamaged(ValueError):
    """The vocabulary file is not the one this code was written for."""


def load(path: Path) -> Encoding:
    """Read the vocabulary; raise `OSError` if there is none and `VocabularyDamaged` if it is not the right one."""
    from tiktoken import Encoding

    try:
        plain = gzip.decompress(path.read_bytes())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise VocabularyDamaged(f"{path.name} is not a whole gzip file") from error
    found = hashlib.sha256(plain).hexdigest()
    if found != SHA256:
        raise VocabularyDamaged(f"{path.name} holds a vocabulary with SHA-256 {found}, expected {SHA256}")
    ranks = {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in plain.splitlines())}
    return Encoding("o200k_base", pat_str=_PATTERN, mergeable_ranks=ranks, special_tokens={})


class O200kCounter:
    """A `TokenCounter`. Texts above 250,000 characters are counted in pieces, one token off at each cut at most.

    If the vocabulary cannot be loaded, one warning is logged and a token is taken to be three bytes, which errs on
    the side of counting too many.
    """

    def __init__(self, vocabulary: Path = VOCABULARY, load: Callable[[Path], Encoding] = load) -> None:
        self._vocabulary = vocabulary
        self._load = load

    def __call__(self, text: str) -> int:
        """Return the number of tokens in `text`; special tokens in it are counted as the plain text they are."""
        encoding = _loaded(self._vocabulary, self._load)
        if encoding is None:
            return _estimate(text)
        return sum(len(encoding.encode_ordinary(text[start : start + _PIECE])) for start in range(0, len(text), _PIECE))


def _loaded(path: Path, load: Callable[[Path], Encoding]) -> Encoding | None:
    # `cache` alone would let two threads load at once, and warn twice.
    with _LOCK:
        return _load_once(path, load)


@cache
def _load_once(path: Path, load: Callable[[Path], Encoding]) -> Encoding | None:
    try:
        return load(path)
    except (OSError, VocabularyDamaged) as error:
        logger.bind(file=path.name, error=str(error)).warning("token vocabulary not usable, counting bytes instead")
        return None


def _estimate(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)
