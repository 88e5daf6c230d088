"""A chat in a terminal or through a pipe, with real pipes and a real pseudo-terminal."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import select
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from channels.console.adapter import ConsoleChannel
from channels.console.options import ConsoleOptions
from gateway.domain.errors import NotDone, Refused, Unavailable
from gateway.domain.inbound import Inbound
from gateway.domain.keys import Route
from gateway.domain.message import MediaRef
from gateway.domain.outbound import Choice, Outbound, Part
from gateway.ports.channel import Presence
from tests.clock import ManualClock, settle

HERE = Route("console", "local")


class Terminal(io.StringIO):
    """A text stream that says a person looks at it."""

    def isatty(self) -> bool:
        return True


class Inbox:
    """Takes events in, after as many refusals as were ordered."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.taken: list[Inbound] = []

    async def __call__(self, inbound: Inbound) -> None:
        if self.failures:
            raise self.failures.pop(0)
        self.taken.append(inbound)

    @property
    def texts(self) -> list[str]:
        return [inbound.text for inbound in self.taken]


@asynccontextmanager
async def console(
    stdin: io.TextIOBase | str = "",
    stdout: io.TextIOBase | None = None,
    clock: ManualClock | None = None,
    **options: bool,
) -> AsyncIterator[ConsoleChannel]:
    ids = (f"id{number}" for number in itertools.count(1))
    channel = ConsoleChannel(
        "console",
        ConsoleOptions(**options),  # type: ignore[arg-type]
        clock or ManualClock(),
        stdin=io.StringIO(stdin) if isinstance(stdin, str) else stdin,  # type: ignore[arg-type]
        stdout=stdout or io.StringIO(),  # type: ignore[arg-type]
        make_id=lambda: next(ids),
    )
    await channel.open()
    yield channel
    await channel.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_every_line_is_a_message_of_the_one_local_person() -> None:
    clock, inbox = ManualClock(), Inbox()
    async with console("hello\n\n   \n/help me\r\nlast", clock=clock) as channel:
        await channel.receive(inbox)
    assert inbox.texts == ["hello", "/help me", "last"]
    first = inbox.taken[0]
    assert str(first.key) == "console:local"
    assert (first.sender.id, first.is_direct, first.addresses_bot, first.sent_at) == ("local", True, True, clock.now())
    assert [inbound.dedupe_key for inbound in inbox.taken] == ["line:id1", "line:id2", "line:id3"]


async def test_lines_of_a_pipe_arrive_as_they_are_written() -> None:
    inbox = Inbox()
    read, write = os.pipe()
    with os.fdopen(read) as stdin:
        async with console(stdin) as channel:
            receiving = asyncio.create_task(channel.receive(inbox))
            os.write(write, b"one\ntw")
            await _until(lambda: inbox.texts == ["one"])
            assert channel.health().receiving
            # A letter may be cut by the pipe.
            os.write(write, "o ü".encode()[:-1])
            await settle()
            os.write(write, "ü".encode()[-1:] + b"\n")
            await _until(lambda: inbox.texts == ["one", "two ü"])
            os.close(write)
            await receiving
            assert (channel.health().receiving, channel.health().detail) == (False, "the input has ended")


async def test_waiting_for_a_line_can_be_cancelled_and_gone_on_with() -> None:
    inbox = Inbox()
    read, write = os.pipe()
    with os.fdopen(read) as stdin:
        async with console(stdin) as channel:
            receiving = asyncio.create_task(channel.receive(inbox))
            os.write(write, b"half")
            await _until(lambda: not select.select([read], [], [], 0)[0])
            receiving.cancel()
            await asyncio.wait([receiving])
            assert not channel.health().receiving
            os.write(write, b" whole\n")
            os.close(write)
            await channel.receive(inbox)
    assert inbox.texts == ["half whole"]


@pytest.mark.parametrize("content", ["a\nb\n", "a\nb", ""])
async def test_a_file_is_read_to_its_end(tmp_path: Path, content: str) -> None:
    inbox = Inbox()
    (tmp_path / "lines").write_text(content)
    with (tmp_path / "lines").open() as stdin:
        async with console(stdin) as channel:
            await channel.receive(inbox)
    assert inbox.texts == content.split()


@pytest.mark.parametrize(("piped", "texts"), [("a\r\n\nb\n", ["a\n\nb"]), ("\n\n", []), ("", []), ("  \n ", [])])
async def test_a_whole_input_can_be_one_message(piped: str, texts: list[str]) -> None:
    inbox = Inbox()
    async with console(piped, one_message=True) as channel:
        await channel.receive(inbox)
    assert inbox.texts == texts


async def test_a_line_that_could_not_be_stored_comes_again_as_the_same_event() -> None:
    clock, inbox = ManualClock(), Inbox(Unavailable("store is away", retry_after=3))
    async with console("keep me\n", clock=clock) as channel:
        receiving = asyncio.create_task(channel.receive(inbox))
        await settle()
        assert inbox.taken == []
        await clock.advance(3)
        await receiving
    assert [inbound.dedupe_key for inbound in inbox.taken] == ["line:id1"]


async def test_a_line_in_hand_when_receiving_broke_is_delivered_by_the_next() -> None:
    inbox = Inbox(RuntimeError("a bug"))
    async with console("keep me\nand me\n") as channel:
        with pytest.raises(RuntimeError):
            await channel.receive(inbox)
        await channel.receive(inbox)
    assert inbox.texts == ["keep me", "and me"]


async def test_an_answer_is_plain_in_a_pipe_and_marked_on_a_terminal() -> None:
    part = Part(text="one\ntwo")
    async with console(stdout=(piped := io.StringIO())) as channel:
        await channel.post(HERE, part, "k", False)
    async with console(Terminal(), terminal := Terminal()) as channel:
        await channel.post(HERE, part, "k", False)
        await channel.answer(None, "picked")  # type: ignore[arg-type]
    assert piped.getvalue() == "one\ntwo\n"
    assert terminal.getvalue() == "bot> one\ntwo\nbot> picked\n"


async def test_a_change_is_printed_only_if_it_is_one() -> None:
    async with console(stdout=(out := io.StringIO())) as channel:
        ref = await channel.post(HERE, Part(text="a"), "k", True)
        assert await channel.put(HERE, ref, Part(text="a"), Part(text="a"), "k", True) == ref
        await channel.put(HERE, ref, Part(text="b"), Part(text="a"), "k", False)
        await channel.put(HERE, ref, Part(text="c"), None, "k", False)
    assert out.getvalue() == "a\nb\nc\n"


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b]52;c;cm0gLXJm\x1b\\", "\\x1b]52;c;cm0gLXJm\\x1b\\"),
        ("\x9b2J\x90q\x9c", "\\x9b2J\\x90q\\x9c"),
        ("bad\rgood\x08\x00\x7f", "bad\\x0dgood\\x08\\x00\\x7f"),
        ("a\tb\r\nc\n", "a\tb\nc\n"),
        ("größer 你好 👩‍👩‍👧", "größer 你好 👩‍👩‍👧"),
    ],
)
async def test_an_answer_cannot_drive_the_terminal(sent: str, shown: str) -> None:
    async with console(Terminal(), out := Terminal()) as channel:
        await channel.post(HERE, Part(text=sent), "k", False)
    assert out.getvalue() == f"bot> {shown}\n"


async def test_what_the_streams_encoding_lacks_is_written_as_an_escape() -> None:
    raw = io.BytesIO()
    async with console(stdout=io.TextIOWrapper(raw, encoding="ascii")) as channel:
        await channel.post(HERE, Part(text="ü \ud800"), "k", False)
        assert raw.getvalue() == b"\\xfc \\ud800\n"


async def test_a_reader_that_is_gone_means_nothing_was_shown() -> None:
    read, write = os.pipe()
    os.close(read)
    out = os.fdopen(write, "w")
    async with console(stdout=out) as channel:
        with pytest.raises(NotDone) as caught:
            await channel.post(HERE, Part(text="hello"), "k", False)
        assert (caught.value.code, caught.value.fatal) == ("output_closed", False)
        assert channel.health().last_outbound is None
    with pytest.raises(BrokenPipeError):
        out.close()


async def test_a_message_is_one_part_with_its_choices_and_files_named() -> None:
    async with console() as channel:
        assert channel.render(Outbound(text="  \n")) == ()
        assert [part.text for part in channel.render(Outbound(text="x" * 9000))] == ["x" * 9000]
        rich = Outbound(
            text="Run it?",
            choices=(Choice(id="y", label="Yes"), Choice(id="n", label="No")),
            media=(MediaRef(ref="r", kind="image", name="cat.png"), MediaRef(ref="r", kind="file")),
        )
        (part,) = channel.render(rich)
        assert part.text == "Run it?\n[y] Yes\n[n] No\n[image: cat.png]\n[file: without a name]"


async def test_what_a_terminal_cannot_do_is_refused() -> None:
    clock = ManualClock()
    async with console(stdout=(out := io.StringIO()), clock=clock) as channel:
        ref = await channel.post(HERE, Part(text="a"), "k", False)
        with pytest.raises(NotDone) as caught:
            await channel.drop(HERE, ref)
        assert caught.value.fatal
        with pytest.raises(Refused):
            await channel.find(HERE, "k", clock.now(), ())
        with pytest.raises(Refused):
            channel.fetch(MediaRef(ref="x", kind="file"), 10)
        await channel.presence(HERE, Presence.WORKING)
        assert channel.routes() == ()
        assert out.getvalue() == "a\n"


async def _until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not done():
            await asyncio.sleep(0.01)
