"""Where the configuration and the data are looked for, and what is said of a file that cannot be read."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from gateway.config.files import data_directory, find_file, read_toml
from gateway.config.load import load_settings
from gateway.domain.errors import ConfigError


def test_the_data_directory_is_the_one_given_then_the_variable_then_the_users(tmp_path: Path) -> None:
    given, named = tmp_path / "given", tmp_path / "named"
    assert data_directory(given, {"TRUNKLINE_DATA": str(named)}) == given
    assert data_directory(None, {"TRUNKLINE_DATA": str(named)}) == named
    assert data_directory(None, {}) == platformdirs.user_data_path("trunkline", appauthor=False)
    assert data_directory(Path("here"), {}).is_absolute()


def test_the_file_is_the_one_given_then_one_here_then_one_with_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, data = tmp_path / "here", tmp_path / "data"
    here.mkdir()
    data.mkdir()
    monkeypatch.chdir(here)
    assert find_file(None, {}, data) is None
    (data / "trunkline.toml").touch()
    assert find_file(None, {}, data) == data / "trunkline.toml"
    (here / "trunkline.toml").touch()
    assert find_file(None, {}, data) == Path("trunkline.toml")
    assert find_file(None, {"TRUNKLINE_CONFIG": "/etc/t.toml"}, data) == Path("/etc/t.toml")
    assert find_file(Path("other.toml"), {"TRUNKLINE_CONFIG": "/etc/t.toml"}, data) == Path("other.toml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[http]\nport = \n", "line 2: Invalid value"),
        (b"a = 1\na = 2\n", "line 2: Cannot overwrite a value"),
        (b'a = 1\n\n"', "line 3: Unterminated string"),
        (b'a = """x\n\n', "line 3: Unterminated string"),
        (b"a = 1\nb = '\xff'\n", "line 2: expected UTF-8 text"),
    ],
)
def test_a_file_that_is_not_toml_is_named_with_the_line(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_toml(file)
    assert str(caught.value).startswith(f"{file}: {message}")


def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_toml(file) == {"a": 1}


def test_a_file_that_was_asked_for_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.toml: No such file"):
        load_settings(tmp_path / "missing.toml", {}, {}, tmp_path)
    with pytest.raises(ConfigError, match="Is a directory"):
        load_settings(tmp_path, {}, {}, tmp_path)


def test_settings_say_which_file_they_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings(None, {}, {}, tmp_path / "data").file is None
    (tmp_path / "trunkline.toml").write_text("http.port = 99")
    settings = load_settings(None, {}, {}, tmp_path / "data")
    assert (settings.file, settings.http.port) == (Path("trunkline.toml"), 99)
