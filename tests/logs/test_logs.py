"""What arrives in the log, from whom, and what never does."""

from __future__ import annotations

import asyncio
import io
import logging
import stat
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from loguru import logger

from gateway.domain.errors import ConfigError
from gateway.logs.setup import configure

TOKEN = "111:AAF-dk39sLkQwErTyUiOpAsDfGhJkLzXcV"
SECRET = "hunter2-hunter2"

Start = Callable[..., io.StringIO]


@pytest.fixture
def start() -> Iterator[Start]:
    undos = []

    def starter(**options: object) -> io.StringIO:
        stream = io.StringIO()
        undos.append(configure(stderr=stream, **options))  # type: ignore[arg-type]
        return stream

    yield starter
    for undo in undos:
        undo()


def test_a_line_shows_whose_conversation_it_is_about(start: Start) -> None:
    log = start()
    logger.bind(why="a b", message="17.4", channel="slack", turn="t1", session="slack:C1").info("turn finished")
    line = log.getvalue()
    assert line.endswith("test_logs: turn finished session=slack:C1 turn=t1 channel=slack message=17.4 why='a b'\n")


@pytest.mark.parametrize(
    "library", ["telegram.ext.Updater", "slack_bolt.AsyncApp", "slack_sdk", "httpx", "uvicorn.error"]
)
def test_a_warning_of_a_library_arrives_redacted(start: Start, library: str) -> None:
    log = start(secrets=[SECRET])
    logging.getLogger(library).warning("cannot reach %s with %s", f"https://x/bot{TOKEN}/getMe", SECRET)
    assert f"WARNING  {library}: cannot reach https://x/bot***/getMe with ***\n" in log.getvalue()


def test_a_library_that_was_loaded_first_and_writes_by_itself_is_bridged(start: Start) -> None:
    own = io.StringIO()
    library = logging.getLogger("some.library")
    library.addHandler(logging.StreamHandler(own))
    library.propagate = False
    log = start()
    library.error("lost %s", TOKEN)
    assert own.getvalue() == ""
    assert "some.library: lost ***" in log.getvalue()


def test_chatter_of_libraries_is_shown_only_when_everything_is_asked_for(start: Start) -> None:
    quiet = start()
    logging.getLogger("httpx").info("HTTP Request: GET x")
    assert quiet.getvalue() == ""
    loud = start(level="debug")
    logging.getLogger("httpx").info("HTTP Request: GET x")
    assert "httpx: HTTP Request: GET x" in loud.getvalue()


async def test_an_error_with_the_token_in_its_address_shows_no_token(start: Start) -> None:
    log = start()
    response = httpx.Response(404, request=httpx.Request("GET", "http://localhost/bot111:AAA-short/getUpdates"))
    try:
        try:
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            raise RuntimeError("polling failed") from error
    except RuntimeError:
        logger.exception("receiving stopped")
        logging.getLogger("telegram.ext").exception("receiving stopped")
    text = log.getvalue()
    assert text.count("/bot***/getUpdates") >= 2
    assert text.count("RuntimeError: polling failed") == 2
    assert "AAA-short" not in text


def test_a_traceback_shows_no_value_of_a_variable(start: Start) -> None:
    log = start()
    password = "".join(["swordfish", "-", "swordfish"])
    try:
        int(password[:0])
    except ValueError:
        logger.exception("no number")
    assert "int(password[:0])" in log.getvalue()
    assert password not in log.getvalue()


def test_a_secret_in_bound_data_is_taken_out(start: Start) -> None:
    log = start(secrets=[SECRET])
    logger.bind(url=f"postgresql://me:{SECRET}@db/x", both={"a": SECRET}).info("connected")
    assert SECRET not in log.getvalue()


def test_a_secret_learned_later_is_taken_out_too(start: Start) -> None:
    known: set[str] = set()
    log = start(secrets=known)
    known.add(SECRET)
    logger.info(SECRET)
    assert SECRET not in log.getvalue()


def test_a_text_from_a_chat_cannot_drive_the_terminal(start: Start) -> None:
    log = start()
    logger.bind(text="\x1b]0;pwned\x07").info("got \x9b2J\r")
    assert "got \\x9b2J\\x0d text=\\x1b]0;pwned\\x07" in log.getvalue()


def test_braces_in_a_message_are_only_braces(start: Start) -> None:
    log = start()
    logging.getLogger("x").error('{"a": {0}} <red>')
    assert 'x: {"a": {0}} <red>\n' in log.getvalue()


def test_a_record_whose_arguments_do_not_fit_is_still_shown(start: Start) -> None:
    log = start()
    logging.getLogger("x").error("%d", SECRET)
    assert f"x: %d ('{SECRET}',)" in log.getvalue()


def test_a_warning_is_logged(start: Start) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        log = start()
        warnings.warn(f"old call with {TOKEN}", DeprecationWarning, stacklevel=1)
    assert "DeprecationWarning: old call with ***" in log.getvalue()


async def test_what_asyncio_complains_of_is_logged(start: Start) -> None:
    log = start()
    context = {"message": "Task failed", "exception": RuntimeError(f"/bot{TOKEN}/x")}
    asyncio.get_running_loop().call_exception_handler(context)
    assert "asyncio: Task failed" in log.getvalue()
    assert "RuntimeError: /bot***/x" in log.getvalue()


def test_an_exception_nobody_handled_is_logged_and_not_printed(
    start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    log = start()
    error = RuntimeError(f"died over {TOKEN}")
    sys.excepthook(RuntimeError, error, None)
    thread = threading.Thread(target=lambda: (_ for _ in ()).throw(error), name="worker")
    thread.start()
    thread.join()
    assert log.getvalue().count("RuntimeError: died over ***") == 2
    assert capsys.readouterr().err == ""


def test_an_interrupt_is_no_failure(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    log = start()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert (log.getvalue(), capsys.readouterr().err) == ("", "KeyboardInterrupt\n")


def test_the_file_gets_everything_while_the_terminal_is_kept_quiet(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "log.txt"
    log = start(file=file, stderr_level="error", secrets=[SECRET])
    logger.info("told {}", SECRET)
    logging.getLogger("x").info("by a library")
    assert log.getvalue() == ""
    assert [line.split(": ", 1)[1] for line in file.read_text().splitlines()] == ["told ***", "by a library"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_file_is_rotated_before_it_grows_too_large(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.logs.setup.FILE_BYTES", 2000)
    start(file=tmp_path / "log.txt")
    for number in range(300):
        logger.info("line {:03}", number)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 6
    assert all(file.stat().st_size <= 2000 for file in files)
    assert "line 299" in (tmp_path / "log.txt").read_text()


def test_a_file_that_cannot_be_written_is_refused_by_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"logs\.file: .* cannot be written"):
        configure(file=tmp_path)


def test_a_log_that_cannot_be_written_stops_nothing(start: Start) -> None:
    start().close()
    logger.info("nobody hears this")


def test_undoing_leaves_the_world_as_it_was() -> None:
    library = logging.getLogger("another.library")
    handler = logging.NullHandler()
    library.addHandler(handler)
    before = (sys.excepthook, sys.unraisablehook, threading.excepthook, list(logging.getLogger().handlers))
    configure(stderr=io.StringIO())()
    assert (sys.excepthook, sys.unraisablehook, threading.excepthook, logging.getLogger().handlers) == before
    assert library.handlers == [handler]
