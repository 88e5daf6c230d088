"""How a file puts other words in the place of the gateway's own, and what is refused in one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.registry import options_by_kind
from gateway.config.load import load_settings
from gateway.config.phrases import phrases_file, read_phrases, toml_lines
from gateway.domain.errors import ConfigError
from gateway.domain.phrases import ENGLISH, Phrases

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
SENTENCES: Mapping[str, str] = asdict(ENGLISH)
PLACES = {name: re.findall(r"\{\w+\}", sentence) for name, sentence in SENTENCES.items()}
FILLED = {"reference": "R", "rounds": 1, "most": 2, "id": "U1", "minutes": 3}

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return how a file of phrases is written."""

    def write(text: str) -> Path:
        file = tmp_path / "words.toml"
        file.write_text(text, encoding="utf-8")
        return file

    return write


def refusal(file: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        read_phrases(file)
    return str(caught.value)


@st.composite
def other_words(draw: st.DrawFn) -> Phrases:
    """Return phrases of any characters that a sentence may have, some with the places of the English ones."""
    characters = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="{}") | st.sampled_from('\n\t"\\')
    replaced = {}
    for name in draw(st.sets(st.sampled_from(sorted(SENTENCES)))):
        place = draw(st.sampled_from(["", *PLACES[name]]))
        words = st.text(characters)
        replaced[name] = draw(st.tuples(words, st.just(place), words).map("".join).filter(str.strip))
    return replace(ENGLISH, **replaced)


def test_a_file_replaces_the_sentences_it_has_and_leaves_the_others_english(write: Write) -> None:
    file = write("stopped = 'Angehalten.'\nfailed = 'Das ging nicht. ({reference})'\n")
    assert read_phrases(file) == replace(ENGLISH, stopped="Angehalten.", failed="Das ging nicht. ({reference})")


def test_a_file_without_a_sentence_changes_nothing(write: Write) -> None:
    assert read_phrases(write("# later\n")) == ENGLISH


def test_a_place_may_be_left_out_moved_and_used_twice(write: Write) -> None:
    file = write("failed = 'Leider nein.'\ntoo_many_rounds = '{reference}: {rounds}, ja {rounds}'\n")
    found = read_phrases(file)
    assert found.failed.format(**FILLED) == "Leider nein."
    assert found.too_many_rounds.format(**FILLED) == "R: 1, ja 1"


@pytest.mark.parametrize("name", sorted(SENTENCES))
def test_every_sentence_can_be_replaced(write: Write, name: str) -> None:
    other = "".join(["anders ", *PLACES[name]])
    assert getattr(read_phrases(write(f'{name} = "{other}"')), name) == other


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("stoped = 'x'", "stoped: unknown phrase; did you mean stopped?"),
        ("[phrases]\nstopped = 'x'", "phrases: unknown phrase"),
        ("stopped = 7", "stopped: expected a text, got the number 7"),
        ("stopped = true", "stopped: expected a text, got true"),
        ("stopped = ['x']", "stopped: expected a text, got a list"),
        ("stopped.german = 'x'", "stopped: expected a text, got a table"),
        ("stopped = ''", "stopped: expected a sentence, got an empty text"),
        ("stopped = ' \\n '".replace("'", '"'), "stopped: expected a sentence, got an empty text"),
        ('stopped = "\\u0000"', "stopped: expected a text, got one with control characters"),
        ('stopped = "\\u001b[2J"', "stopped: expected a text, got one with control characters"),
        ("stopped = '{reference}'", "stopped: expected no braces, got '{reference}'"),
        ("stopped = '{'", "stopped: expected no braces, got '{'"),
        ("stopped = '{{}}'", "stopped: expected no braces, got '{'"),
        ("failed = '{refrence}'", "failed: expected no braces but {reference}, got '{refrence}'"),
        ("failed = 'a { b'", "failed: expected no braces but {reference}, got '{ b'"),
        ("failed = 'a } b'", "failed: expected no braces but {reference}, got '}'"),
        ("failed = '{reference'", "failed: expected no braces but {reference}, got '{reference'"),
        ("failed = '{{reference}}'", "failed: expected no braces but {reference}, got '{'"),
        ("failed = '{ reference }'", "failed: expected no braces but {reference}, got '{ reference }'"),
        ("failed = '{}'", "failed: expected no braces but {reference}, got '{}'"),
        ("failed = '{0}'", "failed: expected no braces but {reference}, got '{0}'"),
        ("failed = '{reference.__class__}'", "got '{reference.__class__}'"),
        ("failed = '{reference[0]}'", "got '{reference[0]}'"),
        ("failed = '{reference!r}'", "got '{reference!r}'"),
        ("failed = '{reference:>9}'", "got '{reference:>9}'"),
        ("failed = '{reference:{reference}}'", "got '{reference:'"),
        ("too_many_rounds = '{id}'", "too_many_rounds: expected no braces but {rounds} and {reference}, got '{id}'"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_phrase(write: Write, line: str, message: str) -> None:
    file = write(line)
    told = refusal(file)
    assert told.startswith(f"{file}: ")
    assert message in told


def test_what_is_wrong_is_shown_shortened(write: Write) -> None:
    assert len(refusal(write(f"stopped = '{{{'x' * 5_000}'"))) < 300


def test_everything_that_is_wrong_is_told_at_once(write: Write) -> None:
    file = write("stoped = 'x'\ncompacted = 'fine'\nfailed = '{}'\ntrimmed = ''\n")
    assert [line.split(": ")[:2] for line in refusal(file).splitlines()] == [
        [str(file), "stoped"],
        [str(file), "failed"],
        [str(file), "trimmed"],
    ]


def test_a_file_that_cannot_be_read_is_named(write: Write, tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.toml") == f"{tmp_path}/none.toml: No such file or directory"
    assert refusal(tmp_path) == f"{tmp_path}: Is a directory"
    assert refusal(write("stopped = 'x'\nfailed = \n")).startswith(f"{tmp_path}/words.toml: line 2: Invalid value")


@given(words=other_words())
def test_what_is_written_is_read_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, words: Phrases) -> None:
    file = tmp_path_factory.getbasetemp() / "round.toml"
    file.write_bytes("\n".join(toml_lines(words)).encode())
    assert read_phrases(file) == words


@given(words=other_words())
def test_what_is_accepted_can_always_be_filled_in(words: Phrases) -> None:
    for name, sentence in asdict(words).items():
        filled = sentence.format(**FILLED)
        assert filled == sentence or PLACES[name]


def test_all_sentences_are_written_in_the_order_of_the_table() -> None:
    assert [line.split(" = ")[0] for line in toml_lines(ENGLISH)] == list(SENTENCES)


def test_a_path_begins_at_the_folder_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert phrases_file(Path("de.toml"), Path("/etc/bot/trunkline.toml")) == Path("/etc/bot/de.toml")
    assert phrases_file(Path("de.toml"), Path("trunkline.toml")) == Path("de.toml")
    assert phrases_file(Path("de.toml"), None) == Path("de.toml")
    assert phrases_file(Path("/srv/de.toml"), Path("/etc/bot/trunkline.toml")) == Path("/srv/de.toml")
    assert phrases_file(Path("~/de.toml"), Path("/etc/bot/trunkline.toml")) == Path("/home/ada/de.toml")
    assert phrases_file(Path("~nobody-at-all/de.toml"), None) == Path("~nobody-at-all/de.toml")


def test_the_settings_hold_the_phrases(write: Write, tmp_path: Path) -> None:
    write("stopped = 'Angehalten.'")
    config = tmp_path / "given.toml"
    config.write_text("gateway.phrases = 'words.toml'")
    assert load_settings(config, {}, {}, tmp_path / "data").phrases == replace(ENGLISH, stopped="Angehalten.")
    config.write_text("")
    assert load_settings(config, {}, {}, tmp_path / "data").phrases == ENGLISH


def test_the_file_can_be_named_in_the_environment_alone(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write("stopped = 'Angehalten.'").parent)
    variables = {"TRUNKLINE_GATEWAY__PHRASES": "words.toml"}
    assert load_settings(None, variables, {}, tmp_path / "data").phrases.stopped == "Angehalten."


@pytest.mark.parametrize("need_channels", [True, False])
def test_a_broken_file_is_told_with_all_else_that_is_wrong(write: Write, tmp_path: Path, need_channels: bool) -> None:
    file = write("stoped = 'x'\ntrimmed = ''")
    variables = {"TRUNKLINE_GATEWAY__PHRASES": str(file), "TRUNKLINE_HTTP__PORT": "eighty"}
    with pytest.raises(ConfigError) as caught:
        load_settings(None, variables, options_by_kind(), tmp_path, need_channels=need_channels)
    source = " (from TRUNKLINE_GATEWAY__PHRASES)"
    assert str(caught.value).splitlines() == [
        "http.port: expected a whole number, got 'eighty' (from TRUNKLINE_HTTP__PORT)",
        f"gateway.phrases: {file}: stoped: unknown phrase; did you mean stopped?{source}",
        f"gateway.phrases: {file}: trimmed: expected a sentence, got an empty text{source}",
    ]


def test_a_file_that_is_not_there_is_told_by_the_name_of_the_setting(tmp_path: Path) -> None:
    config = tmp_path / "given.toml"
    config.write_text("gateway.phrases = 'de.toml'")
    with pytest.raises(ConfigError) as caught:
        load_settings(config, {}, {}, tmp_path)
    assert str(caught.value) == f"gateway.phrases: {tmp_path}/de.toml: No such file or directory"


def test_the_example_of_the_documentation_is_accepted(write: Write) -> None:
    (example,) = re.findall(r"```toml german\.toml\n(.*?)```", PAGE, re.DOTALL)
    found = read_phrases(write(example))
    changed = {name for name, sentence in asdict(found).items() if sentence != SENTENCES[name]}
    assert changed == {"stopped", "unlisted_person"}
