"""Counting tokens: ours beside the library's own encoder, which must agree on every text."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.pairs import medians
from bench.row import Row
from gateway.tokens.o200k import VOCABULARY, O200kCounter, load

SIZE = 20_000


async def measure_counting(*, rounds: int = 15) -> Sequence[Row]:
    """Measure our count of texts of five kinds beside the tokenizer's, and that both say the same."""
    count, tokenizer = O200kCounter(), load(VOCABULARY)
    rows = []
    for kind, text in _texts().items():

        async def ours(text: str = text) -> None:
            count(text)

        async def theirs(text: str = text) -> None:
            tokenizer.encode_ordinary(text)

        times = await medians(rounds, ours, theirs)
        tokens = len(tokenizer.encode_ordinary(text))
        if count(text) != tokens:
            raise AssertionError(f"{kind}: counted {count(text)}, the tokenizer says {tokens}")
        name = f"count {len(text):,} characters of {kind} ({tokens:,} tokens, as the tokenizer)"
        rows.append(
            Row(name=name, ours=times[0] * 1000, floor=times[1] * 1000, unit="ms", floor_is="the tokenizer itself")
        )
    return rows


def _texts() -> Mapping[str, str]:
    chance = random.Random(3)
    han = "".join(chr(chance.randrange(0x4E00, 0x9FA5)) for _ in range(SIZE))
    return {
        "English": ("The quick brown fox jumps over the lazy dog, again and again. " * SIZE)[:SIZE],
        "Chinese": han,
        "code": Path(__file__).read_text(encoding="utf-8"),
        "JSON": json.dumps([{"id": number, "name": f"row {number}", "ok": True} for number in range(500)])[:SIZE],
        "base64": base64.b64encode(chance.randbytes(SIZE)).decode()[:SIZE],
    }
