"""The commands as a person and a script use them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.gateway import TRUNKLINE, Gateway, command, environment


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    gateway = Gateway(tmp_path, "")
    yield gateway
    await gateway.kill()


async def test_piped_input_is_one_message_and_the_next_call_remembers_it(tmp_path: Path) -> None:
    code, out, err = await command("chat", "--data", str(tmp_path), stdin="first line\nsecond line\n")
    assert (code, err) == (0, "")
    assert "1 message," in out
    code, out, err = await command("chat", "--data", str(tmp_path), stdin="again")
    assert (code, err) == (0, "")
    assert "3 messages," in out
    assert "first: first line" in out
    assert "last: again" in out


async def test_a_piped_command_that_was_done_counts_as_answered(tmp_path: Path) -> None:
    code, out, err = await command("chat", "--data", str(tmp_path), stdin="/compact")
    assert (code, err) == (0, "")
    assert "nothing to sum up" in out
    for n in range(3):
        await command("chat", "--data", str(tmp_path), stdin=f"message {n}")
    code, out, err = await command("chat", "--data", str(tmp_path), stdin="/compact")
    assert (code, err) == (0, "")
    assert "summed up" in out


async def test_each_name_is_a_chat_of_its_own(tmp_path: Path) -> None:
    await command("chat", "--data", str(tmp_path), stdin="one")
    _, out, _ = await command("chat", "work", "--data", str(tmp_path), stdin="two")
    assert "1 message," in out


async def test_nothing_piped_is_nothing_said(tmp_path: Path) -> None:
    assert await command("chat", "--data", str(tmp_path), stdin="") == (0, "", "")


async def test_a_chat_works_beside_a_running_gateway(gateway: Gateway) -> None:
    await gateway.start()
    code, out, _ = await command("chat", "--data", str(gateway.data), stdin="hi")
    assert (code, out.splitlines()[-1]) == (0, "last: hi")
    assert await gateway.stop() == 0


async def test_a_second_gateway_on_one_store_refuses_and_names_the_process(gateway: Gateway) -> None:
    await gateway.start()
    code, out, err = await command("run", "--data", str(gateway.data), "--port", "0")
    assert (code, out) == (2, "")
    assert f"a gateway is already running on {gateway.data} as process {gateway.pid}" in err
    assert "Traceback" not in err


async def test_end_of_input_does_not_stop_the_gateway_and_both_signals_do(gateway: Gateway) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        await gateway.start()
        await gateway.ready()
        assert await gateway.stop(number) == 0


async def test_a_port_that_is_taken_is_named_with_its_setting(gateway: Gateway, tmp_path: Path) -> None:
    await gateway.start()
    port = gateway.address.rsplit(":", 1)[1]
    code, _, err = await command("run", "--data", str(tmp_path / "other"), "--port", port)
    assert code == 2
    assert "http.port" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "extra", "sentence"),
    [
        (["--model", "openai:gpt-5"], {}, "OPENAI_API_KEY"),
        (["--model", "openai-responses:gpt-5"], {}, "openai:"),
        (["--model", "opnai:gpt-5"], {}, "openai"),
        ([], {"TRUNKLINE_MODEL__DEFUALT": "echo"}, "TRUNKLINE_MODEL__DEFAULT"),
        ([], {"TRUNKLINE_STORE__URL": "mysql://u:hunter2hunter2@h/db"}, "store.url"),
    ],
)
async def test_what_is_set_wrong_is_one_sentence_and_no_traceback(
    tmp_path: Path, arguments: list[str], extra: dict[str, str], sentence: str
) -> None:
    for name in ("run", "chat"):
        code, out, err = await command(name, "--data", str(tmp_path), *arguments, stdin="hi", extra=extra)
        assert (code, out) == (2, "")
        assert sentence in err
        assert "Traceback" not in err
        assert "hunter2" not in err


async def test_a_key_in_the_environment_is_offered_and_never_used(gateway: Gateway) -> None:
    gateway.extra = {"ANTHROPIC_API_KEY": "sk-ant-test-0123456789"}
    await gateway.start()
    text = "".join(gateway.output)
    assert "echo" in text
    assert "--model anthropic:" in text
    assert "sk-ant" not in text


async def test_an_open_channel_is_said_to_be_open(gateway: Gateway) -> None:
    gateway.config.write_text(
        '[http]\nport = 0\n[channels.telegram]\nbot_token = "123456:TEST-token_of_no_bot_at_all_0000000"\n'
        'api_url = "http://127.0.0.1:9"\npeople = ["*"]\n'
    )
    await gateway.start()
    assert "OPEN" in "".join(gateway.output)


async def test_a_reader_that_goes_away_loses_no_answer(tmp_path: Path) -> None:
    """`echo hi | trunkline chat | head -0`: the answer could not be printed, so the next call prints it first."""
    read, write = os.pipe()
    os.close(read)
    process = await _chat_into(write, tmp_path)
    os.close(write)
    assert process == 1
    code, out, _ = await command("chat", "--data", str(tmp_path), stdin="second")
    assert code == 0
    assert "last: lost?" in out
    assert out.index("last: lost?") < out.index("last: second")


async def test_an_output_that_was_closed_from_the_start_loses_no_answer_either(tmp_path: Path) -> None:
    command_line = f"echo lost? | {TRUNKLINE} chat --data {tmp_path} >&-"
    process = await asyncio.create_subprocess_shell(
        command_line, stderr=asyncio.subprocess.PIPE, env=environment(), cwd=tmp_path
    )
    _, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (
        1,
        "trunkline: the answer could not be printed; the next chat prints it first\n",
    )


async def _chat_into(descriptor: int, data: Path) -> int:
    process = await asyncio.create_subprocess_exec(
        TRUNKLINE, "chat", "--data", str(data),
        stdin=asyncio.subprocess.PIPE, stdout=descriptor, stderr=asyncio.subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    await process.communicate(b"lost?")
    assert process.returncode is not None
    return process.returncode


async def test_the_version_is_told(tmp_path: Path) -> None:
    code, out, _ = await command("--version")
    assert (code, out.split()[0]) == (0, "trunkline")
