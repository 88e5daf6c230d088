"""Files that come in: streamed, bounded, and refused for what they are not."""

from __future__ import annotations

import pytest

from channels.telegram.adapter import TelegramChannel
from gateway.domain.errors import Refused, Unavailable
from gateway.domain.message import MediaRef
from tests.channels.telegram.harness import SkippingClock, opened
from tests.loopback.telegram import TelegramServer, Trouble


async def fetched(channel: TelegramChannel, ref: str, most: int, size: int | None = None) -> bytes:
    media = MediaRef(ref=ref, kind="file", size_bytes=size)
    return b"".join([chunk async for chunk in channel.fetch(media, most)])


async def test_a_file_is_fetched_whole(telegram: TelegramServer, clock: SkippingClock) -> None:
    content = bytes(range(256)) * 4000
    ref = telegram.files.add(content, "docs/näme mit %2F.bin")
    async with opened(telegram, clock) as channel:
        assert await fetched(channel, ref, len(content)) == content


async def test_a_file_over_the_limit_is_not_downloaded(telegram: TelegramServer, clock: SkippingClock) -> None:
    ref = telegram.files.add(b"x" * 100)
    async with opened(telegram, clock) as channel:
        with pytest.raises(Refused, match="at most 99 bytes"):
            await fetched(channel, ref, 99)
        with pytest.raises(Refused, match="at most 20,000,000 bytes"):
            await fetched(channel, ref, 10**9, size=25_000_000)
    assert len(telegram.called("getFile")) == 1


async def test_a_file_that_is_larger_than_it_says_is_cut_off(telegram: TelegramServer, clock: SkippingClock) -> None:
    ref = telegram.files.add(b"x" * 100_000)
    telegram.files.claimed_size = 10
    async with opened(telegram, clock) as channel:
        with pytest.raises(Refused):
            await fetched(channel, ref, 1000)


async def test_a_file_that_is_unknown_is_refused(telegram: TelegramServer, clock: SkippingClock) -> None:
    async with opened(telegram, clock) as channel:
        with pytest.raises(Refused):
            await fetched(channel, "id-of-nothing", 1000)
        ref = telegram.files.add(b"x", "gone.bin")
        telegram.files.forget()
        telegram.files.claimed_size = 1
        with pytest.raises(Refused, match="404"):
            await fetched(channel, ref, 1000)


async def test_a_server_that_fails_is_unavailable(telegram: TelegramServer, clock: SkippingClock) -> None:
    ref = telegram.files.add(b"x")
    async with opened(telegram, clock) as channel:
        for trouble in (Trouble.BROKEN, Trouble.DROPPED, Trouble.LIMITED):
            telegram.fail(trouble, method="getFile")
            with pytest.raises(Unavailable):
                await fetched(channel, ref, 1000)


async def test_a_download_that_breaks_off_is_unavailable(telegram: TelegramServer, clock: SkippingClock) -> None:
    ref = telegram.files.add(b"x" * 100_000)
    telegram.fail(Trouble.LOST, method="download")
    async with opened(telegram, clock) as channel:
        with pytest.raises(Unavailable):
            await fetched(channel, ref, 10_000_000)
        assert len(await fetched(channel, ref, 10_000_000)) == 100_000


async def test_a_reader_that_stops_early_leaves_nothing_open(telegram: TelegramServer, clock: SkippingClock) -> None:
    ref = telegram.files.add(b"x" * 5_000_000)
    async with opened(telegram, clock) as channel:
        chunks = channel.fetch(MediaRef(ref=ref, kind="file"), 10_000_000)
        assert await anext(chunks)
        await chunks.aclose()  # type: ignore[attr-defined]
