"""`trunkline phrases` as an operator meets it, and its file in a gateway."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from gateway.config.phrases import read_phrases
from gateway.domain.phrases import ENGLISH
from tests.acceptance.gateway import command


@pytest.fixture
def german(tmp_path: Path) -> Path:
    file = tmp_path / "german.toml"
    file.write_text('nothing_to_compact = "Noch nichts zum Kürzen da, \\"ehrlich\\" 🙂"\n', encoding="utf-8")
    return file


async def test_the_english_sentences_are_printed_where_no_others_are(tmp_path: Path) -> None:
    code, out, err = await command("phrases", "--data", str(tmp_path / "none"), cwd=tmp_path)
    assert (code, err, tomllib.loads(out)) == (0, "", asdict(ENGLISH))
    assert not (tmp_path / "none").exists()


async def test_what_is_printed_can_be_saved_and_used(tmp_path: Path, german: Path) -> None:
    config = tmp_path / "given.toml"
    config.write_text("gateway.phrases = 'german.toml'\n[channels.slack]\npeople = ['U1']\n")
    code, out, err = await command("phrases", "--config", str(config), "--data", str(tmp_path))
    assert (code, err) == (0, "")
    saved = tmp_path / "saved.toml"
    saved.write_text(out, encoding="utf-8")
    assert read_phrases(saved) == read_phrases(german) != ENGLISH


async def test_what_is_printed_is_utf_8_whatever_the_terminal_reads(tmp_path: Path, german: Path) -> None:
    extra = {"TRUNKLINE_GATEWAY__PHRASES": str(german), "PYTHONIOENCODING": "latin-1"}
    _, out, _ = await command("phrases", "--data", str(tmp_path), extra=extra, cwd=tmp_path)
    assert tomllib.loads(out)["nothing_to_compact"] == 'Noch nichts zum Kürzen da, "ehrlich" 🙂'


async def test_a_gateway_speaks_the_words_of_the_file(tmp_path: Path, german: Path) -> None:
    extra = {"TRUNKLINE_GATEWAY__PHRASES": str(german)}
    code, out, _ = await command("chat", "--data", str(tmp_path), stdin="/compact", extra=extra, cwd=tmp_path)
    assert (code, out.strip()) == (0, 'Noch nichts zum Kürzen da, "ehrlich" 🙂')


@pytest.mark.parametrize("name", [["run"], ["chat"], ["phrases"], ["sessions", "list"]])
async def test_a_broken_file_stops_every_command_with_one_sentence(tmp_path: Path, name: list[str]) -> None:
    (tmp_path / "broken.toml").write_text("failed = 'Nein: {refrence}'")
    extra = {"TRUNKLINE_GATEWAY__PHRASES": "broken.toml"}
    code, out, err = await command(*name, "--data", str(tmp_path), stdin="hi", extra=extra, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err == (
        "trunkline: gateway.phrases: broken.toml: failed: expected no braces but {reference}, got '{refrence}'"
        " (from TRUNKLINE_GATEWAY__PHRASES)\n"
    )
